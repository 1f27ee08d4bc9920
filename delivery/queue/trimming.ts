import type { Store } from '../../store/store.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { WorkLimits } from './limits.ts'
import { beyondLimit } from './queue.ts'
import type { HeldQueue } from './queue-locks.ts'
import type { QueuesInMemory } from './queues-in-memory.ts'
import { type Transitions, untilUnchanged } from './transitions.ts'
import type { DeadLetter, WorkItem } from './work-item.ts'
import { deadPrefix, removal } from './work-records.ts'

/** Whether an attempt with the item is under way at this moment. */
export type IsBusy = (queue: string, item: WorkItem) => boolean

/** Keeps a queue within its limits. */
export function createTrimming(parts: {
  store: Store
  inMemory: QueuesInMemory
  transitions: Transitions
  giveUp: (queue: HeldQueue, items: readonly WorkItem[], reason: string) => Promise<void>
  steadyClock: () => number
  limits: WorkLimits
  metrics: Pick<Metrics, 'workDropped'>
}) {
  const { store, inMemory, transitions, giveUp, steadyClock, limits, metrics } = parts

  return {
    /** Applies all limits: age and number of items, age and number of dead letters. */
    async tidy(name: HeldQueue, isBusy: IsBusy, isClosed: (queue: string) => boolean): Promise<void> {
      const now = steadyClock()
      const { inOrder, aside } = inMemory.get(name)
      const old = [...inOrder, ...aside].filter(({ enqueuedAt }) => enqueuedAt + limits.ageMs <= now)
      const free = old.filter((item) => !isBusy(name, item))
      await giveUp(name, free, 'it waited longer than items are kept')
      await dropExcess(name)
      const { dead } = inMemory.get(name)
      // A closed queue has no maximum of dead letters, because the letters are its last messages.
      const excess = isClosed(name) ? 0 : dead.length - limits.deadLettersPerQueue
      const expired = dead.filter(({ givenUpAt }, index) => {
        return index < excess || Date.parse(givenUpAt) + limits.deadLetterAgeMs <= now
      })
      await forgetLetters(name, expired)
    },

    /** Drops the oldest items if the queue has too many. */
    dropExcess,
  }

  function dropExcess(name: HeldQueue): Promise<void> {
    return untilUnchanged(async () => {
      const excess = beyondLimit(inMemory.get(name), limits.perQueue)
      if (excess.length === 0) return
      const { changes, apply } = transitions.removing(name, excess)
      await store.commit(changes)
      apply()
      inMemory.queueOf(name).dropped += excess.length
      metrics.workDropped.inc(excess.length)
    })
  }

  async function forgetLetters(name: HeldQueue, letters: readonly DeadLetter[]): Promise<void> {
    if (letters.length === 0) return
    await store.commit(letters.map((letter) => removal(deadPrefix, name, letter)))
    inMemory.takeLetters(name, letters)
    // The queue counts these letters as dropped. The metric `workDropped` does not, because operators had time to deal
    // with them.
    inMemory.queueOf(name).dropped += letters.length
  }
}
