import type { Journal } from '../../journal/journal.ts'
import type { Change, Store } from '../../store/store.ts'
import { inBatches } from './batches.ts'
import { currentOf, isFromBefore } from './queue.ts'
import type { QueuesInMemory } from './queues-in-memory.ts'
import type { EarlierMessage, NewItem, WorkItem } from './work-item.ts'
import { itemChange, removal, workPrefix } from './work-records.ts'

/**
 * Puts earlier messages in front of a new queue, in the order of the journal. The sequence of such an item is the
 * position of its message. So a node that begins once more, or at the same time as another, makes the same items.
 * Called under the lock of the queue, while nothing is sent from the queue.
 */
export function createBeginning(parts: {
  store: Store
  journal: Pick<Journal, 'get' | 'floor'>
  inMemory: Pick<QueuesInMemory, 'queueOf' | 'add' | 'take'>
  newItem: NewItem
  /** Items that one queue may hold. */
  perQueue: number
  appended: (queue: string) => void
}) {
  const { store, journal, inMemory, newItem, perQueue, appended } = parts

  /** Takes the newest messages for which there is room. The commits apply only while condition `beginning` is met. */
  return async (name: string, messages: readonly EarlierMessage[], beginning: Change): Promise<void> => {
    const { inOrder } = inMemory.queueOf(name)
    const placed = inOrder.filter(isFromBefore)
    const isPlaced = new Set(placed.map(({ sequence }) => sequence))
    const positions = new Set(messages.map(({ position }) => position))
    // Items of these messages that wait already. They are moved into the order of the positions, because a message that
    // a node accepted before it heard of the queue may belong between them.
    const unplaced = inOrder.filter(({ position }) => positions.has(position) && !isPlaced.has(position))
    const waitingAt = new Map(unplaced.map((item) => [item.position, item]))
    const later = inOrder.filter((item) => !isFromBefore(item) && !waitingAt.has(item.position))
    const known = new Set([...placed, ...later].map(({ messageId }) => messageId))
    const newest = messages.slice(Math.max(0, messages.length - Math.max(0, perQueue - later.length)))
    const missing = newest.filter(({ position }) => !isPlaced.has(position))
    for await (const portion of inBatches(missing, ({ position }) => journal.get(position))) {
      const moved: WorkItem[] = []
      const items: { item: WorkItem; payload?: Buffer | undefined }[] = []
      for (const [{ position, at, describe }, message] of portion) {
        const waiting = waitingAt.get(position)
        if (waiting) moved.push(waiting)
        const { messageId, details } = waiting ?? (message && describe(message)) ?? {}
        if (messageId === undefined || details === undefined || known.has(messageId)) continue
        known.add(messageId)
        if (waiting) items.push({ item: { ...waiting, sequence: position } })
        else {
          const item = { ...newItem(messageId, details), sequence: position, acceptedAt: at }
          items.push(
            position < journal.floor()
              ? { item, payload: message?.payload }
              : { item: { ...item, position } },
          )
        }
      }
      await store.commit([
        beginning,
        ...moved.map((item) => removal(workPrefix, name, item)),
        ...items.map(({ item, payload }) => itemChange(name, item, payload)),
      ])
      inMemory.take(name, moved)
      // Another node may have added the same items at the same time.
      for (const { item } of items) if (!currentOf(inMemory.queueOf(name), item)) inMemory.add(name, item)
    }
    appended(name)
  }
}
