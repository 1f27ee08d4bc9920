import type { TObject } from 'typebox'

/** A kind of event: what its name says. */
export interface KindRow {
  /** Full name, as the `event` field carries it. */
  readonly name: string
  /** Last levels of the topic `radio/{livestreamId}/{suffix}`. The last of them names the kind in the client library. */
  readonly suffix: string
  /** What an event of the kind tells, for people. */
  readonly about: string
  /** An event is published when it begins. Its time is then that of the hub, and music goes to plugin targets by itself. */
  readonly isNow?: boolean
}

/** The name of a kind for people: `track.playing`. */
export function shortName(name: string): string {
  return name.replace(/^.*\.radio\./, '')
}

/** A class of events: its kinds share everything but their names. Inbox topics and credentials can be limited to it. */
export interface ClassRow {
  readonly name: string
  readonly kinds: readonly KindRow[]
  readonly schema: TObject
  /** The schemas that `schema` refers to. */
  readonly parts: readonly TObject[]
  /** Where such events can be published. */
  readonly doors: readonly ('mqtt' | 'https')[]
  /** Whether webhooks get them. */
  readonly isPushed: boolean
  /** Field with the event time. Among events of one kind, the latest time wins (service.md §6.3). */
  readonly timeField: 'start' | 'time'
  /** Field whose values stay side by side: one retained event for each. Absent: one for each topic. */
  readonly slotField?: string
  /** Field with the instant at which an event ends. Absent: it holds until the next one. */
  readonly endField?: string
  /** Field with the seconds for which a session that was away still gets an event. Absent: it gets each. */
  readonly cycleField?: string
  /** What a session that was away gets: of each topic the newest event, or every one. */
  readonly keep: 'latest' | 'every'
  /** How long an event holds, for people. */
  readonly life: {
    readonly holds: string
    readonly ends: string
    /** What a session gets that was away. */
    readonly afterReturn: string
  }
  /** What is read of the newer form (open.md §2), beside what holds for every class: `validator/dialect.ts`. */
  readonly newerForm: {
    /** Codes of the differences that only some classes have. */
    readonly differences: readonly string[]
    /** Fields that are dropped. */
    readonly dropped: readonly string[]
    /** Fields of services that are dropped. */
    readonly droppedOfServices: readonly string[]
  }
  /** The fields of an event beside `event`, of the sample feed. */
  readonly example: Readonly<Record<string, unknown>>
  /** Changes of the example with which it is refused. Undefined: without the field. */
  readonly refused: readonly {
    readonly change: Readonly<Record<string, unknown>>
    readonly path: string
    readonly errorCode: string
  }[]
}
