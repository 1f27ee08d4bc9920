import { type Change, ConditionFailed } from '../../store/store.ts'
import { currentOf, itemsIn, type Queue, sequencesOf, sharedUpTo } from './queue.ts'
import type { HeldQueue } from './queue-locks.ts'
import type { QueuesInMemory } from './queues-in-memory.ts'
import type { SharedItems } from './shared-items.ts'
import { placeKeys } from './shared-records.ts'
import type { WorkItem } from './work-item.ts'
import { itemChange, removal, type StillThere, stillThere, workPrefix } from './work-records.ts'

/** What becomes of items of a queue: the changes for a commit, and `apply`, which makes them in memory after it. */
export interface Transition {
  changes: Change[]
  apply: () => void
}

export type Transitions = ReturnType<typeof createTransitions>

/** A change that another node has overtaken is tried so often. */
const maxTries = 3

/**
 * Makes the changes for items that leave a queue, or change there. Where a shared item is among them, the place of the
 * queue rises to it, and the shared items before it that stay get records of their own. The commit then fails if another
 * node has changed the place meanwhile (`untilUnchanged`).
 */
export function createTransitions(parts: {
  inMemory: Pick<QueuesInMemory, 'get' | 'take' | 'replace'>
  sharedItems: Pick<SharedItems, 'raise'>
}) {
  const { inMemory, sharedItems } = parts

  return {
    /** Removes items. `condition`: of the records that the items have of their own. */
    removing(name: HeldQueue, items: readonly WorkItem[], condition?: StillThere): Transition {
      const gone = currentOfEach(inMemory.get(name), items)
      const own = gone.filter(({ isShared }) => !isShared)
      const { changes, apply } = unsharing(
        name,
        gone.filter(({ isShared }) => isShared),
      )
      return {
        changes: [...own.map((item) => removal(workPrefix, name, item, condition)), ...changes],
        apply() {
          inMemory.take(name, gone)
          apply()
        },
      }
    },

    /**
     * Replaces an item by its changed state. `payload` is needed if the position of the item is 0. The commit fails if
     * another node has removed the item.
     */
    changing(
      name: HeldQueue,
      now: WorkItem,
      { isShared: _no, ...next }: WorkItem,
      payload?: Buffer,
    ): Transition {
      const { changes, apply } = unsharing(name, now.isShared ? [now] : [])
      return {
        changes: [itemChange(name, next, payload, now.isShared ? undefined : stillThere), ...changes],
        apply() {
          inMemory.replace(name, next)
          apply()
        },
      }
    },
  }

  /** The shared items `parting` do not wait as such any more. */
  function unsharing(name: HeldQueue, parting: readonly WorkItem[]): Transition {
    if (parting.length === 0) return { changes: [], apply: () => undefined }
    const place = parting.reduce((last, { position }) => Math.max(last, position), 0)
    const sequences = sequencesOf(parting)
    const staying = sharedUpTo(inMemory.get(name), place)
      .filter(({ sequence }) => !sequences.has(sequence))
      .map(({ isShared: _no, ...item }): WorkItem => item)
    const raised = sharedItems.raise(name, place)
    return {
      // First the records: who hears of the place then keeps these items.
      changes: [...staying.map((item) => itemChange(name, item)), raised.change],
      apply() {
        for (const item of staying) inMemory.replace(name, item)
        raised.apply()
      },
    }
  }
}

/** Calls `change` again if its commit failed because another node had raised the place of the queue. */
export async function untilUnchanged<Result>(
  change: () => Promise<Result>,
  tries = maxTries,
): Promise<Result> {
  try {
    return await change()
  } catch (error) {
    if (!isOvertaken(error) || tries === 1) throw error
    // This node has received the change of the other one by now.
    return untilUnchanged(change, tries - 1)
  }
}

/** Whether a commit failed because another node had raised the place of the queue. */
export function isOvertaken(error: unknown): boolean {
  return error instanceof ConditionFailed && error.key.startsWith(placeKeys.prefix)
}

function currentOfEach(queue: Queue, items: readonly WorkItem[]): WorkItem[] {
  const [first] = items
  if (!first || items.length > 1) return itemsIn(queue, sequencesOf(items))
  // A search for one item is faster than a filter.
  const current = currentOf(queue, first)
  return current ? [current] : []
}
