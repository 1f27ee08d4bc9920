import type { Attempt } from '../../event/outcome-schemas.ts'
import { type Change, ConditionFailed, type Store } from '../../store/store.ts'
import { currentOf, isSame } from './queue.ts'
import type { HeldQueue } from './queue-locks.ts'
import type { QueuesInMemory } from './queues-in-memory.ts'
import { isOvertaken, type Transitions, untilUnchanged } from './transitions.ts'
import type { ReadPayload, WorkItem } from './work-item.ts'
import { deadPrefix, removal, workPrefix } from './work-records.ts'

/** An item keeps this many of its newest attempts. */
const maxAttempts = 20

/** Changes an item after an attempt. `alongside`: further changes for the same commit. */
export function createAttemptedItems(parts: {
  store: Store
  inMemory: Pick<QueuesInMemory, 'get' | 'takeLetters'>
  transitions: Transitions
  payload: ReadPayload
}) {
  const { store, inMemory, transitions, payload } = parts

  return {
    /** Removes a delivered item, or the dead letter that the item became during the attempt. */
    acknowledge: (name: HeldQueue, item: WorkItem, alongside: readonly Change[] = []): Promise<void> =>
      untilUnchanged(async () => {
        const queue = inMemory.get(name)
        const now = currentOf(queue, item)
        const letters = now ? [] : queue.dead.filter((letter) => isSame(letter, item))
        const { changes, apply } = transitions.removing(name, [item])
        await store.commit([
          ...(now ? changes : [removal(workPrefix, name, item)]),
          ...letters.map((letter) => removal(deadPrefix, name, letter)),
          ...alongside,
        ])
        apply()
        inMemory.takeLetters(name, letters)
      }),

    /** Notes that an attempt begins. */
    noteAttempt: (name: HeldQueue, item: WorkItem, begun: number): Promise<void> =>
      change(name, item, [], (now) => ({ ...now, begun })),

    /** Notes that the attempt that began does not count. */
    forgetAttempt: (name: HeldQueue, item: WorkItem): Promise<void> => change(name, item, [], ended),

    /** Records a failed attempt in the item. With `asideUntil`, also sets the item aside until then. */
    postpone: (
      name: HeldQueue,
      item: WorkItem,
      attempt: Attempt,
      how: { refused: boolean; asideUntil?: number },
      alongside: readonly Change[] = [],
    ): Promise<void> =>
      change(name, item, alongside, (now) => ({
        ...ended(now),
        tries: now.tries + 1,
        refusals: now.refusals + (how.refused ? 1 : 0),
        attempts: [...now.attempts, attempt].slice(-maxAttempts),
        ...(how.asideUntil !== undefined && { asideUntil: how.asideUntil }),
      })),

    /** Sets the item aside until `asideUntil`, without recording an attempt. */
    setAside: (name: HeldQueue, item: WorkItem, asideUntil: number): Promise<void> =>
      change(name, item, [], (now) => ({ ...ended(now), asideUntil })),
  }

  /** Replaces an item by the result of `next` if the item still waits. Stores `alongside` in any case. */
  async function change(
    name: HeldQueue,
    item: WorkItem,
    alongside: readonly Change[],
    next: (now: WorkItem) => WorkItem,
  ): Promise<void> {
    const own = item.position === 0 ? await payload(name, item) : undefined
    await untilUnchanged(async () => {
      const now = currentOf(inMemory.get(name), item)
      if (!now) return void (await store.commit(alongside))
      const { changes, apply } = transitions.changing(name, now, next(now), own)
      try {
        await store.commit([...changes, ...alongside])
      } catch (error) {
        if (!(error instanceof ConditionFailed) || isOvertaken(error)) throw error
        // Another node has settled the item, and the item must not come back.
        return void (await store.commit(alongside))
      }
      apply()
    })
  }
}

/** The item without an attempt under way. */
function ended({ begun: _over, ...item }: WorkItem): WorkItem {
  return item
}
