import type { EventKind, HubEvent } from '../event/kind.ts'
import type { Message } from '../event/message.ts'
import type { Round } from '../event/warnings.ts'
import type { Prepare } from '../store/commit-together.ts'
import type { Change } from '../store/store.ts'
import type { Timing } from '../telemetry/latency.ts'
import type { Repetition } from './repetitions.ts'

/** The content of one commit, to be stored before the publisher gets its acknowledgement. */
export interface Settlement {
  messages: readonly Message[]
  /** Makes new topics for livestreams of the event. Undefined: the event needs no new topic. */
  topics: Prepare | undefined
  /** Undefined: the event is not published. */
  accepted: Accepted | undefined
  /** Undefined: the hub does not remember the event, so a repetition counts as new. */
  repetition: Repetition | undefined
  /** Further changes: see `Arrival`. */
  alongside: readonly Change[] | undefined
  /** When the event reached each of its stages. */
  timing: Timing
}

/** An accepted event, as webhooks and plugin targets need it. */
export interface Accepted {
  /** The event as it is published, with its id and the ids of its services. */
  event: HubEvent
  id: string
  kind: EventKind
  /** Event time, milliseconds since the epoch. */
  time: number
  /** The event as JSON: the payload of its messages. */
  payload: Buffer
  institutionId: string
  /**
   * Livestreams for which the event is published. The commit has one message for each of them. These messages come
   * before all other messages of the commit, in this order.
   */
  livestreamIds: readonly string[]
}

/**
 * Plans the deliveries of an accepted event to webhooks and plugin targets (design.md §10). The pipeline calls `plan`
 * in these cases:
 *
 * - The event has `plugins`.
 * - A livestream of the event is in `withWebhooks`.
 * - `isForAll` is true.
 */
export interface WorkPlanner {
  /** The livestreams that have webhooks. */
  withWebhooks: { has(livestreamId: string): boolean }
  /** Whether a plugin target gets events that do not name it. */
  isForAll: boolean
  /** The types of all plugin targets. */
  pluginTargets: ReadonlySet<string>
  /** The changes that put the event into its queues, once into each. They belong in the commit of the event. */
  plan(accepted: Accepted, repetition: Pick<Repetition, 'once' | 'isRepeatedWhole'>): readonly Change[]
}

/**
 * Watches beside the pipeline what becomes of events (open.md §7). It never blocks one, and an event never waits for it.
 */
export interface Watch {
  /** The rounds of loops that the event would be. */
  roundsOf(accepted: Pick<Accepted, 'event' | 'kind' | 'livestreamIds'>): readonly Round[]
  /** An event is stored. `isRepetition`: its publisher had sent it before. */
  published(accepted: Accepted, isRepetition: boolean): void
}

/** Stores messages, and sends them to connected clients. */
export interface FanOut {
  /**
   * Stores messages and `others` in one commit, and sends the messages. Resolves when all recipients have been written
   * to. Rejects if the commit fails, or if a recipient may lack a message.
   */
  distribute(messages: readonly Message[], others: readonly Prepare[]): Promise<void>
  /** Sends messages without storing them. If an event could not be stored, its report goes out this way. */
  announce(messages: readonly Message[]): void
}
