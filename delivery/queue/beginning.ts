import type { Journal } from '../../journal/journal.ts'
import type { Change, Store } from '../../store/store.ts'
import { inBatches } from './batches.ts'
import { currentOf, isOlderThanQueue } from './queue.ts'
import type { HeldQueue } from './queue-locks.ts'
import type { QueuesInMemory } from './queues-in-memory.ts'
import { type Transitions, untilUnchanged } from './transitions.ts'
import type { EarlierMessage, NewItem, WorkItem } from './work-item.ts'
import { itemChange } from './work-records.ts'

/**
 * Adds items for earlier messages to a new queue. These items come before all other items, in the order of the journal.
 *
 * A second run makes the same items: docs/decisions, "A webhook that begins with earlier events is marked until it
 * has them". During the run, the hub sends nothing from the queue.
 */
export function createBeginning(parts: {
  store: Store
  journal: Pick<Journal, 'get' | 'floor'>
  inMemory: Pick<QueuesInMemory, 'queueOf' | 'add'>
  transitions: Transitions
  newItem: NewItem
  /** Maximum number of items that one queue may hold. */
  perQueue: number
  appended: (queue: string) => void
}) {
  const { store, journal, inMemory, transitions, newItem, perQueue, appended } = parts

  /**
   * Adds items for `messages`. If the queue has too little room, adds items only for the newest. Each commit includes
   * the condition `beginning`, and changes nothing if the condition does not hold.
   */
  return async (name: HeldQueue, messages: readonly EarlierMessage[], beginning: Change): Promise<void> => {
    const { inOrder } = inMemory.queueOf(name)
    const placed = inOrder.filter(isOlderThanQueue)
    const isPlaced = new Set(placed.map(({ sequence }) => sequence))
    const positions = new Set(messages.map(({ position }) => position))
    // These items wait already: the hub made them when it accepted their messages. Like the new items below, they get
    // their journal positions as sequences. So all are in the order of the journal.
    const unplaced = inOrder.filter(({ position }) => positions.has(position) && !isPlaced.has(position))
    const waitingAt = new Map(unplaced.map((item) => [item.position, item]))
    const later = inOrder.filter((item) => !isOlderThanQueue(item) && !waitingAt.has(item.position))
    const known = new Set([...placed, ...later].map(({ messageId }) => messageId))
    const newest = messages.slice(Math.max(0, messages.length - Math.max(0, perQueue - later.length)))
    const missing = newest.filter(({ position }) => !isPlaced.has(position))
    for await (const batch of inBatches(missing, ({ position }) => journal.get(position))) {
      const moved: WorkItem[] = []
      const items: { item: WorkItem; payload?: Buffer | undefined }[] = []
      for (const [{ position, at, describe }, message] of batch) {
        const waiting = waitingAt.get(position)
        if (waiting) moved.push(waiting)
        const { messageId, details } = waiting ?? (message && describe(message)) ?? {}
        if (messageId === undefined || details === undefined || known.has(messageId)) continue
        known.add(messageId)
        if (waiting) {
          const { isShared: _no, ...item } = waiting
          items.push({ item: { ...item, sequence: position } })
        } else {
          const item = { ...newItem(messageId, details), sequence: position, acceptedAt: at }
          items.push(
            position < journal.floor()
              ? { item, payload: message?.payload }
              : { item: { ...item, position } },
          )
        }
      }
      await untilUnchanged(async () => {
        const { changes, apply } = transitions.removing(name, moved)
        await store.commit([
          beginning,
          ...changes,
          ...items.map(({ item, payload }) => itemChange(name, item, payload)),
        ])
        apply()
      })
      // Skip items that another node has added at the same time.
      for (const { item } of items) if (!currentOf(inMemory.queueOf(name), item)) inMemory.add(name, item)
    }
    appended(name)
  }
}
