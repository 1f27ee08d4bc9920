/** The table of event kinds (design.md §7): everything that depends on the name of an event. */
const table = [
  { name: 'de.org.hub.v1.radio.track.playing', class: 'track', suffix: 'track/playing', timeField: 'start' },
  { name: 'de.org.hub.v1.radio.track.next', class: 'track', suffix: 'track/next', timeField: 'start' },
  { name: 'de.org.hub.v1.radio.control', class: 'control', suffix: 'control', timeField: 'time' },
  { name: 'de.org.hub.v1.radio.data', class: 'data', suffix: 'data', timeField: 'start' },
] as const

/** Class of an event: the optional last level of an inbox topic, and what a credential may be limited to. */
export type EventClass = (typeof table)[number]['class']

/** Full name of an event, as its `event` field carries it. */
type EventName = (typeof table)[number]['name']

/** What follows from the name of an event. */
export interface EventKind {
  readonly name: EventName
  readonly class: EventClass
  /** Levels below `radio/{livestreamId}/`. */
  readonly suffix: (typeof table)[number]['suffix']
  /** The field with the event time. Of events of this kind, the one with the latest time wins (service.md §6.3). */
  readonly timeField: 'start' | 'time'
}

/** All event kinds. */
export const eventKinds: readonly EventKind[] = table

/** All event classes. */
export const eventClasses: readonly EventClass[] = ['track', 'control', 'data']

/** The kind with this name, or undefined if there is none. */
export function kindOf(name: string): EventKind | undefined {
  return byName.get(name)
}

/** Whether `text` is the name of an event class. */
export function isEventClass(text: string): text is EventClass {
  return eventClasses.some((cls) => cls === text)
}

// A Map, because a plain object would also know `constructor` and its like.
const byName: ReadonlyMap<string, EventKind> = new Map(table.map((kind) => [kind.name, kind]))
