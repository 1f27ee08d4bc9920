import { type EventOfKind, eventKinds, type TrackEvent } from './events.ts'

/** The events by what they tell: what plays, what comes next, control states such as announcements, radiotext. */
export type Kind = keyof EventOfKind

/** The kinds of tracks. */
export type TrackKind = { [K in Kind]: EventOfKind[K] extends TrackEvent ? K : never }[Kind]

/** What the name of an event says. */
type EventKind = (typeof eventKinds)[keyof typeof eventKinds]

/** A plain object would also have inherited keys such as `constructor`. */
const kinds: ReadonlyMap<unknown, EventKind> = new Map(Object.entries(eventKinds))

/** What the name of an event says. Undefined: no event, or one that is newer than this package. */
export function kindOf(event: unknown): EventKind | undefined {
  return isRecord(event) ? kinds.get(event.event) : undefined
}

/** The event that a message carries. Undefined: it is not one that the hub has checked. */
export function eventIn(payload: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(payload))
  } catch {
    return undefined
  }
}

/** Whether a value is what JSON calls an object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
