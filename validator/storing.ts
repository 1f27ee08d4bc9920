import type { Message } from '../event/message.ts'
import type { Change } from '../store/store.ts'
import type { Distribute } from './arrival.ts'
import type { Topic, Topics } from './topics.ts'
import type { Accepted, WorkPlanner } from './work.ts'

/** What is stored in one commit, or not at all: the acknowledgement speaks for all of it. */
export interface Settlement {
  messages: readonly Message[]
  topics: { created: readonly Topic[]; changes: readonly Change[] }
  /** Undefined: nothing was published. */
  accepted: Accepted | undefined
  /** Changes of the door. */
  alongside: readonly Change[] | undefined
}

/** Stores what was decided about an event and sets it going. Rejects when nothing was stored. */
export function createStoring(parts: { topics: Topics; distribute: Distribute; work: WorkPlanner }) {
  const { topics, distribute, work } = parts

  return async (settlement: Settlement): Promise<void> => {
    const { messages, accepted, alongside = [] } = settlement
    const planned = accepted && work.plan(accepted)
    try {
      await distribute(messages, [...settlement.topics.changes, ...(planned?.changes ?? []), ...alongside])
    } catch (error) {
      planned?.failed()
      throw error
    }
    topics.show(settlement.topics.created)
    planned?.stored()
  }
}
