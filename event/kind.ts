/** The table of event kinds (design.md §7): everything that depends on the name of an event. */
const table = [
  { name: 'de.org.hub.v1.radio.track.playing', class: 'track', suffix: 'track/playing', timeField: 'start' },
  { name: 'de.org.hub.v1.radio.track.next', class: 'track', suffix: 'track/next', timeField: 'start' },
  { name: 'de.org.hub.v1.radio.control', class: 'control', suffix: 'control', timeField: 'time' },
  { name: 'de.org.hub.v1.radio.data', class: 'data', suffix: 'data', timeField: 'start' },
] as const

/** Class of an event. Inbox topics and credentials can be limited to classes. */
export type EventClass = (typeof table)[number]['class']

/** Full name of an event, as its `event` field carries it. */
type EventName = (typeof table)[number]['name']

/** A kind of event: the properties that its name determines. */
export interface EventKind {
  readonly name: EventName
  readonly class: EventClass
  /** Last levels of the topic `radio/{livestreamId}/{suffix}`. */
  readonly suffix: (typeof table)[number]['suffix']
  /** Field with the event time. Among events of this kind, the latest time wins (service.md §6.3). */
  readonly timeField: 'start' | 'time'
}

/** All event kinds. */
export const eventKinds: readonly EventKind[] = table

/** All event classes. */
export const eventClasses: readonly EventClass[] = ['track', 'control', 'data']

/** The kinds by name. A plain object would also have inherited keys such as `constructor`. */
export const kindByName: ReadonlyMap<string, EventKind> = new Map(table.map((kind) => [kind.name, kind]))

/** Whether `text` is the name of an event class. */
export function isEventClass(text: string): text is EventClass {
  return eventClasses.some((cls) => cls === text)
}
