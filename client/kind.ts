import type { ControlEvent, DataEvent, HubEvent, TrackEvent } from './events.ts'

/** The events by what they tell: what plays, what comes next, control states such as announcements, radiotext. */
export interface EventOfKind {
  playing: TrackEvent
  next: TrackEvent
  control: ControlEvent
  data: DataEvent
}

export type Kind = keyof EventOfKind

/** The compiler holds that no event name of the schemas is missing. */
const names: Record<NonNullable<HubEvent['event']>, Kind> = {
  'de.org.hub.v1.radio.track.playing': 'playing',
  'de.org.hub.v1.radio.track.next': 'next',
  'de.org.hub.v1.radio.control': 'control',
  'de.org.hub.v1.radio.data': 'data',
}

/** A plain object would also have inherited keys such as `constructor`. */
const kinds: ReadonlyMap<unknown, Kind> = new Map(Object.entries(names))

/** The kind of an event by its name. Undefined: no event, or one that is newer than this package. */
export function kindOf(event: unknown): Kind | undefined {
  return isRecord(event) ? kinds.get(event.event) : undefined
}

/** Whether a value is what JSON calls an object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
