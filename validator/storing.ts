import type { ErrorItem } from '../event/error.ts'
import type { EventKind } from '../event/kind.ts'
import type { Message } from '../event/message.ts'
import type { HubEvent } from '../event/schema.ts'
import type { Change, Store } from '../store/store.ts'
import type { Way } from '../telemetry/latency.ts'
import type { Repetition } from './repetitions.ts'
import type { NewTopics, Topics } from './topics.ts'

/** An accepted event, as webhooks and plugin targets need it. */
export interface Accepted {
  /** The event as it is published, with its id and the ids of its services. */
  event: HubEvent
  id: string
  kind: EventKind
  /** The event as JSON: the payload of its messages. */
  payload: Buffer
  institutionId: string
  /** Livestreams that the event is published for. Their messages come first in the commit, in this order. */
  livestreamIds: readonly string[]
}

/** Plans the deliveries of an accepted event to webhooks and plugin targets (design.md §10). */
export interface WorkPlanner {
  /** Warnings for the report, for example: the plugin target is unknown. */
  warnings(event: HubEvent): ErrorItem[]
  /** The changes that put the event into its queues, once into each. They belong in the commit of the event. */
  plan(accepted: Accepted, repetition: Pick<Repetition, 'once' | 'isRepeatedWhole'>): readonly Change[]
}

/** Messages that are about to be stored. */
export interface Batch {
  /** All changes of the commit. */
  readonly changes: readonly Change[]
  /** The callback to give to `Store.commit`, described there. */
  readonly underway: (first: number) => void
}

/** Sends messages to connected clients. After `prepare`, the caller calls exactly one of `deliver` and `takeBack`. */
export interface FanOut<Prepared extends Batch> {
  prepare(messages: readonly Message[], alongside: readonly Change[]): Prepared
  /** Call it when the batch is stored, from position `first` on. Resolves when all recipients have been written to. */
  deliver(batch: Prepared, first: number): Promise<void>
  /** Call it if the batch is not stored, or if that is not certain. */
  takeBack(batch: Prepared): void
}

/** The content of one commit. The publisher gets its acknowledgement only when all of it is stored. */
interface Settlement {
  messages: readonly Message[]
  topics: NewTopics
  /** Undefined: the event is not published. */
  accepted: Accepted | undefined
  /** Undefined: the hub does not remember the event, so a repetition counts as new. */
  repetition: Repetition | undefined
  /** Further changes: see `Arrival`. */
  alongside: readonly Change[] | undefined
  /** When the event reached each of its stages. */
  way: Way
}

/**
 * Appends the messages of a decision to the journal, in one commit with all changes that follow from the decision. Then
 * sends the messages to clients. Rejects if the commit fails, or if it is uncertain that every recipient has them.
 */
export function createStoring<Prepared extends Batch>(parts: {
  store: Pick<Store, 'commit'>
  topics: Topics
  fanout: FanOut<Prepared>
  work: WorkPlanner
}) {
  const { store, topics, fanout, work } = parts

  return async (settlement: Settlement): Promise<void> => {
    const { messages, accepted, repetition, alongside = [], way } = settlement
    const { created, changes } = settlement.topics
    let batch: Prepared | undefined
    let first: number
    try {
      const planned = accepted && repetition ? work.plan(accepted, repetition) : []
      const following = changes.concat(planned, repetition?.marks() ?? [], alongside)
      batch = fanout.prepare(repetition?.isRepeated ? messages.map(asRepetition) : messages, following)
      first = await store.commit(batch.changes, batch.underway)
    } catch (error) {
      if (batch) fanout.takeBack(batch)
      topics.giveUp(created)
      repetition?.failed()
      throw error
    }
    // Update the memory right after the commit, before this node receives a later commit of another node.
    way.stored = performance.now()
    way.position = first
    topics.show(created)
    repetition?.stored(first)
    await fanout.deliver(batch, first)
  }
}

function asRepetition(message: Message): Message {
  return message.isReport ? message : { ...message, isRepetition: true }
}
