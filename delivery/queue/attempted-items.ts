import { type Change, ConditionFailed, type Store } from '../../store/store.ts'
import { currentOf, isSame, replaceIn } from './queue.ts'
import type { HeldQueue } from './queue-locks.ts'
import type { QueuesInMemory } from './queues-in-memory.ts'
import type { Attempt, ReadPayload, WorkItem } from './work-item.ts'
import { deadPrefix, itemChange, removal, stillThere, workPrefix } from './work-records.ts'

/** An item keeps this many of its newest attempts. */
const maxAttempts = 20

/** Changes an item after an attempt. `alongside`: further changes for the same commit. */
export function createAttemptedItems(parts: {
  store: Store
  inMemory: Pick<QueuesInMemory, 'get' | 'take' | 'takeLetters'>
  payload: ReadPayload
}) {
  const { store, inMemory, payload } = parts

  return {
    /** Removes a delivered item, or the dead letter that the item became during the attempt. */
    async acknowledge(name: HeldQueue, item: WorkItem, alongside: readonly Change[] = []): Promise<void> {
      const queue = inMemory.get(name)
      const letters = currentOf(queue, item) ? [] : queue.dead.filter((letter) => isSame(letter, item))
      const removals = letters.map((letter) => removal(deadPrefix, name, letter))
      await store.commit([removal(workPrefix, name, item), ...removals, ...alongside])
      inMemory.take(name, [item])
      inMemory.takeLetters(name, letters)
    },

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
    const queue = inMemory.get(name)
    const now = currentOf(queue, item)
    const changed = now && next(now)
    if (!changed) return void (await store.commit(alongside))
    try {
      await store.commit([itemChange(name, changed, own, stillThere), ...alongside])
    } catch (error) {
      if (!(error instanceof ConditionFailed)) throw error
      // Another node has settled the item, and the item must not come back.
      return void (await store.commit(alongside))
    }
    replaceIn(queue, changed)
  }
}

/** The item without an attempt under way. */
function ended({ begun: _over, ...item }: WorkItem): WorkItem {
  return item
}
