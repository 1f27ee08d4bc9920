import type { Message } from '../event/message.ts'
import type { Change } from '../store/store.ts'
import type { Way } from '../telemetry/stages.ts'
import type { Distribute } from './arrival.ts'
import { decideAgain, type Repetition } from './repetitions.ts'
import type { NewTopics, Topics } from './topics.ts'
import type { Accepted, WorkPlanner } from './work.ts'

/** What is stored in one commit, or not at all: the acknowledgement speaks for all of it. */
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
 * Stores what is decided about an event and sets it going. `decide` is called in the same turn, and once more where the
 * event has been marked meanwhile. Rejects when nothing was stored.
 */
export function createStoring(parts: { topics: Topics; distribute: Distribute; work: WorkPlanner }) {
  return (decide: (isAgain: boolean) => Settlement): Promise<void> =>
    decideAgain((isAgain) => store(decide(isAgain)))

  async function store(settlement: Settlement): Promise<void> {
    const { topics, distribute, work } = parts
    const { messages, accepted, repetition, alongside = [] } = settlement
    const { created, changes } = settlement.topics
    let isStored = false
    const stored = (first: number) => {
      if (isStored) return
      isStored = true
      settlement.way.stored = performance.now()
      settlement.way.position = first
      topics.show(created)
      repetition?.stored(first)
    }
    try {
      const planned = accepted && repetition ? work.plan(accepted, repetition) : []
      const following = [...changes, ...planned, ...(repetition?.marks() ?? []), ...alongside]
      await distribute(repetition?.isRepeated ? messages.map(asRepetition) : messages, following, stored)
    } catch (error) {
      if (isStored) throw error
      topics.giveUp(created)
      repetition?.failed()
      throw error
    }
  }
}

function asRepetition(message: Message): Message {
  return message.isReport ? message : { ...message, isRepetition: true }
}
