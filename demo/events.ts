import type { Livestream } from '../validator/feed/feed.ts'
import type { Element, Station } from './programme.ts'

/** An event as a broadcaster writes it. */
export interface DemoEvent extends Record<string, unknown> {
  event: string
  services: { id: string }[]
}

/** Makes a `playing` event. `start` is in milliseconds since the epoch. */
export function playing(station: Station, element: Element, itemId: string, start: number): DemoEvent {
  return track('de.org.hub.v1.radio.track.playing', station, element, itemId, start)
}

/** Makes a `next` event. `itemId` is the id under which the element will play. */
export function next(station: Station, element: Element, itemId: string, start: number): DemoEvent {
  return track('de.org.hub.v1.radio.track.next', station, element, itemId, start)
}

/** Makes the event that begins (`state` true) or ends a traffic announcement. */
export function trafficAnnouncement(station: Station, state: boolean, time: number): DemoEvent {
  return {
    event: 'de.org.hub.v1.radio.control',
    name: 'traffic-announcement',
    state,
    time: iso(time),
    validUntil: iso(time + 120_000),
    services: station.livestreams.map(service),
  }
}

/** A line of radiotext, repeated by the source every 30 seconds. */
export function radiotext(station: Station, text: string, start: number): DemoEvent {
  return {
    event: 'de.org.hub.v1.radio.data',
    start: iso(start),
    cycle: 30,
    text,
    services: station.livestreams.map(service),
  }
}

/** A `playing` event with mistakes, which the hub must refuse as invalid. */
export function malformed(station: Station, element: Element, itemId: string, start: number): DemoEvent {
  return { ...playing(station, element, itemId, start), title: undefined, length: 0, genre: 'Pop' }
}

function track(
  event: string,
  station: Station,
  { type, artist, title, length, cover }: Element,
  playlistItemId: string,
  start: number,
): DemoEvent {
  return {
    event,
    type,
    start: iso(start),
    length,
    title,
    ...(cover !== undefined && { media: [{ type: 'cover', url: cover, description: title }] }),
    ...(artist !== undefined && { artist, contributors: [{ name: artist, role: 'artist' }] }),
    playlistItemId,
    services: station.livestreams.map(service),
  }
}

function service({ type, externalId, id, publisher, institution }: Livestream) {
  return { type, externalId, id, publisherId: publisher.id, institutionId: institution.id }
}

function iso(time: number): string {
  return new Date(time).toISOString()
}
