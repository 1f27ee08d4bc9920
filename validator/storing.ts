import type { ErrorItem } from '../event/error.ts'
import type { EventKind } from '../event/kind.ts'
import type { Message } from '../event/message.ts'
import type { HubEvent } from '../event/schema.ts'
import type { Change, Store } from '../store/store.ts'
import type { Way } from '../telemetry/stages.ts'
import type { Repetition } from './repetitions.ts'
import type { NewTopics, Topics } from './topics.ts'

/** An accepted event, as webhooks and plugin targets need it. */
export interface Accepted {
  /** As it is published: with id and completed services. */
  event: HubEvent
  id: string
  kind: EventKind
  /** The event as JSON: the payload of its messages. */
  payload: Buffer
  institutionId: string
  /** Livestreams that the event is published for. Their messages come first in the commit, in this order. */
  livestreamIds: readonly string[]
}

/** Plans the work that follows from an accepted event beyond its distribution (design.md §10). */
export interface WorkPlanner {
  /** The parts of the event that cannot be done, for the report. */
  warnings(event: HubEvent): ErrorItem[]
  /** The changes that put the event once into every queue that it belongs to. The commit of the event stores them. */
  plan(accepted: Accepted, repetition: Pick<Repetition, 'once' | 'isRepeatedWhole'>): readonly Change[]
}

/** Messages that are about to be stored. */
export interface Batch {
  /** The whole commit. */
  readonly changes: readonly Change[]
  /** The callback for the commit: see `commit` of `Store`. */
  readonly underway: (first: number) => void
}

/** Brings messages to all connected clients. After `prepare`, exactly one of `deliver` and `takeBack` is called. */
export interface FanOut<Prepared extends Batch> {
  prepare(messages: readonly Message[], alongside: readonly Change[]): Prepared
  /** The batch is stored; its first message has this position. Resolves when every recipient has been written to. */
  deliver(batch: Prepared, first: number): Promise<void>
  /** Called if the batch is not stored, or not certainly stored. */
  takeBack(batch: Prepared): void
}

/** The content of one commit. The acknowledgement says that all of it is stored. */
interface Settlement {
  messages: readonly Message[]
  topics: NewTopics
  /** Undefined: nothing was published. */
  accepted: Accepted | undefined
  /** Undefined: nothing of the event is remembered. */
  repetition: Repetition | undefined
  /** Changes of the door. */
  alongside: readonly Change[] | undefined
  /** The times of its stages so far. */
  way: Way
}

/**
 * Appends the messages of a decision to the journal, with all changes that follow from the decision, and then fans the
 * messages out. Rejects if it is not certain that every recipient has them, mostly because nothing was stored.
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
    // Right after the commit: its effects must be in memory before this node hears of a later commit of another node.
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
