import type { Static, TObject } from 'typebox'
import type { ClassRow, KindRow } from './kinds/class-row.ts'
import { control } from './kinds/control.ts'
import { data } from './kinds/data.ts'
import { track } from './kinds/track.ts'

/** All classes of events (design.md §7). Everything that depends on the name of an event follows from their rows. */
const rows = [track, control, data] as const

/** Class of an event. Inbox topics and credentials can be limited to classes. */
export type EventClass = (typeof rows)[number]['name']

/** An event of any kind. */
export type HubEvent = EventOf<(typeof rows)[number]['schema']>

type EventOf<Schema> = Schema extends TObject ? Static<Schema> : never

/** A kind of event, with all that its class determines. */
export interface EventKind extends KindRow, Omit<ClassRow, 'name' | 'kinds'> {
  readonly class: EventClass
}

/** All event kinds. */
export const eventKinds: readonly EventKind[] = rows.flatMap(({ kinds, ...row }) =>
  kinds.map((kind) => ({ ...row, ...kind, class: row.name })),
)

/** All event classes. */
export const eventClasses: readonly EventClass[] = rows.map(({ name }) => name)

/** All schemas, referenced ones first, for validators and API descriptions that resolve the `$ref`s. */
export const eventSchemas: readonly TObject[] = [
  ...new Set([
    ...rows.flatMap(({ parts }): readonly TObject[] => parts),
    ...rows.map(({ schema }) => schema),
  ]),
]

/** The kinds by name. A plain object would also have inherited keys such as `constructor`. */
export const kindByName: ReadonlyMap<string, EventKind> = new Map(eventKinds.map((kind) => [kind.name, kind]))

/** What a kind is called where its class is clear: `playing`. It is the last level of its topics. */
export function bareName({ suffix }: Pick<EventKind, 'suffix'>): string {
  return suffix.slice(suffix.lastIndexOf('/') + 1)
}

/** Whether `text` is the name of an event class. */
export function isEventClass(text: string): text is EventClass {
  return eventClasses.some((cls) => cls === text)
}

/** Which of the values that a topic retains side by side an event is: the `name` of a control state, else ''. */
export function slotOf(event: HubEvent, { slotField }: EventKind): string {
  const fields: Readonly<Record<string, unknown>> = event
  return slotField === undefined ? '' : String(fields[slotField])
}
