import { readFileSync } from 'node:fs'
import { sampleFeedPath } from '../config/sample-feed.ts'
import type { EventKind } from '../event/kind.ts'
import { type Livestream, parseFeed } from '../validator/feed/feed.ts'

/** The livestreams of the sample feed, by institution. */
export const stations: readonly (readonly Livestream[])[] = readStations()

/** The institutions of the sample feed. */
export const institutions = stations.map(([first]) => first?.institution.id ?? '')

/** Livestream `index` of institution `of`. */
export function station(of = 0, index = 0): Livestream {
  const livestream = stations[of]?.[index]
  if (!livestream) throw new Error(`the sample feed has no livestream ${of}/${index}`)
  return livestream
}

export function serviceOf(livestream: Livestream): Record<string, unknown> {
  return {
    type: livestream.type,
    externalId: livestream.externalId,
    publisherId: livestream.publisher.id,
    institutionId: livestream.institution.id,
  }
}

/** A valid now-playing event. */
export function playing(
  livestream: Livestream,
  fields: Record<string, unknown> = {},
): Record<string, unknown> {
  return {
    event: 'de.org.hub.v1.radio.track.playing',
    type: 'music',
    start: new Date().toISOString(),
    length: 180,
    title: 'Morgenlicht',
    artist: 'Mira Hollund',
    services: [serviceOf(livestream)],
    playlistItemId: 'item-1',
    ...fields,
  }
}

/** A valid control event. */
export function control(
  livestream: Livestream,
  fields: Record<string, unknown> = {},
): Record<string, unknown> {
  const now = Date.now()
  return {
    event: 'de.org.hub.v1.radio.control',
    name: 'traffic-announcement',
    state: true,
    time: new Date(now).toISOString(),
    validUntil: new Date(now + 60_000).toISOString(),
    services: [serviceOf(livestream)],
    ...fields,
  }
}

/** A valid data event. */
export function data(livestream: Livestream, fields: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    event: 'de.org.hub.v1.radio.data',
    start: new Date().toISOString(),
    cycle: 30,
    text: 'Sie hören Morgenlicht',
    services: [serviceOf(livestream)],
    ...fields,
  }
}

/** The example of a kind, for this livestream and this moment. */
export function exampleOf(
  { name, timeField, endField, example }: EventKind,
  livestream: Livestream,
  fields: Record<string, unknown> = {},
): Record<string, unknown> {
  const now = Date.now()
  return {
    event: name,
    ...example,
    [timeField]: new Date(now).toISOString(),
    ...(endField !== undefined && { [endField]: new Date(now + 60_000).toISOString() }),
    services: [serviceOf(livestream)],
    ...fields,
  }
}

export const playingTopic = (livestream: Livestream) => `radio/${livestream.id}/track/playing`
export const controlTopic = (livestream: Livestream) => `radio/${livestream.id}/control`
export const dataTopic = (livestream: Livestream) => `radio/${livestream.id}/data`

function readStations(): Livestream[][] {
  const text = readFileSync(sampleFeedPath, 'utf8')
  const parsed = parseFeed(text)
  if ('problem' in parsed) throw new Error(parsed.problem)
  const byInstitution = new Map<string, Livestream[]>()
  for (const { id } of JSON.parse(text).items) {
    const livestream = parsed.feed.byId.get(id)
    if (!livestream) continue
    const list = byInstitution.get(livestream.institution.id) ?? []
    byInstitution.set(livestream.institution.id, [...list, livestream])
  }
  return [...byInstitution.values()]
}
