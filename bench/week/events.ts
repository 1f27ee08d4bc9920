import { randomBytes } from 'node:crypto'
import { control, data, playing } from '../../test/events.ts'
import type { Livestream } from '../../validator/feed/feed.ts'

/** The kinds of 20 successive events of a livestream: track playing (P), next track (N), radiotext (D), control (C). */
const kinds = [...'PNPDPNPDPNPDPNPDPNPC'] as const
/** Every 101st event has no title. If it is a track event, the validation refuses it. */
const refusedEvery = 101
/** A text of this length makes an event of about 900 bytes. The text is random, so that compression gains nothing. */
const textBytes = 390
const stateMs = 300_000

/** Each livestream with dead webhooks has this many times as many events as one without. */
export const busier = 3

/** Makes the event with this number, at the time `at`. The first `busy` livestreams get more events than the others. */
export function eventAt(livestreams: readonly Livestream[], busy: number, number: number, at: number) {
  const inRound = livestreams.length + (busier - 1) * busy
  const nth = number % inRound
  const livestream = livestreams[nth < livestreams.length ? nth : nth % busy]
  if (!livestream) throw new Error('there are no livestreams')
  const text = randomBytes((textBytes * 3) / 4).toString('base64')
  const kind = kinds[Math.floor(number / inRound) % kinds.length]
  const fields = {
    start: new Date(at).toISOString(),
    title: number % refusedEvery === 0 ? null : `Titel ${number}`,
    playlistItemId: String(number),
    artist: text,
  }
  const event =
    kind === 'C'
      ? control(livestream, {
          time: fields.start,
          state: number % 2 === 0,
          validUntil: new Date(at + stateMs).toISOString(),
        })
      : kind === 'D'
        ? data(livestream, { start: fields.start, text })
        : kind === 'N'
          ? playing(livestream, { ...fields, event: 'de.org.hub.v1.radio.track.next' })
          : playing(livestream, fields)
  return { institutionId: livestream.institution.id, payload: Buffer.from(JSON.stringify(event)) }
}
