import type { ErrorItem } from '../event/error.ts'
import type { EventKind } from '../event/kind.ts'
import type { HubEvent } from '../event/schema.ts'
import type { Change } from '../store/store.ts'
import type { Repetition } from './repetitions.ts'

/** An accepted event, as far as work for webhooks and plugin targets can follow from it. */
export interface Accepted {
  /** As it is published: with id and completed services. */
  event: HubEvent
  id: string
  kind: EventKind
  /** The same as JSON: what these messages carry. */
  payload: Buffer
  institutionId: string
  /** Livestreams it is published for: the messages of its commit begin with theirs, in this order. */
  livestreamIds: readonly string[]
}

/** What follows from an accepted event beyond its distribution (design.md §10). */
export interface WorkPlanner {
  /** What of it cannot be done, for the report. */
  warnings(event: HubEvent): ErrorItem[]
  /** The changes that put it into every queue it belongs to, once. They go into the commit of the event. */
  plan(accepted: Accepted, repetition: Pick<Repetition, 'once' | 'isRepeatedWhole'>): readonly Change[]
}
