import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Journal } from '../../journal/journal.ts'
import type { InLock } from '../../store/lock.ts'
import type { Change, Store } from '../../store/store.ts'
import { inBatches } from './batches.ts'
import type { HeldQueue } from './queue-locks.ts'
import type { QueuesInMemory } from './queues-in-memory.ts'
import type { EarlierMessage, NewItem, WorkItem } from './work-item.ts'
import { itemChange } from './work-records.ts'

type MessageToRepeat = Pick<EarlierMessage, 'position' | 'at'> & Pick<WorkItem, 'messageId' | 'details'>

/**
 * Puts messages of the journal at the end of a queue once more. An item for a message below `journal.floor()` has a
 * copy of the payload, because the journal may remove the message.
 */
export function createRepeating(parts: {
  store: Store
  journal: Pick<Journal, 'get' | 'floor'>
  inMemory: Pick<QueuesInMemory, 'get' | 'add'>
  newItem: NewItem
  /** Maximum number of items that one queue may hold. */
  perQueue: number
  appended: (queue: string) => void
  /** A lock of all nodes: one node at a time adds a portion. */
  inLock: InLock
}) {
  const { store, journal, inMemory, newItem, perQueue, appended, inLock } = parts

  /**
   * Adds items for the messages that do not wait in the queue. If the queue has too little room, adds items only for
   * the newest. Before any change, calls `first` with the expected number of items. Returns the number of added items.
   */
  return async (
    name: HeldQueue,
    messages: readonly EarlierMessage[],
    first: (count: number) => Promise<void>,
  ): Promise<number> => {
    const owed = await missing(name, messages)
    await first(owed.length)
    let repeated = 0
    for await (const batch of inBatches(owed, (message) => copyOf(journal, message))) {
      repeated += await inLock((held) => add(name, batch, held))
    }
    return repeated
  }

  /** Adds a portion, which is one commit. Returns how many items it added. */
  async function add(
    name: HeldQueue,
    batch: readonly (readonly [MessageToRepeat, Buffer | undefined])[],
    held: readonly Change[],
  ): Promise<number> {
    // Another node may have added the same messages a moment ago.
    const { inOrder, aside } = inMemory.get(name)
    const known = new Set([...inOrder, ...aside].map(({ messageId }) => messageId))
    const items: { item: WorkItem; payload?: Buffer }[] = []
    for (const [message, copied] of batch) {
      const { position, at, messageId, details } = message
      const payload = copied ?? (await copyOf(journal, message))
      // Skip a message that waits already, or that the journal has removed meanwhile.
      if (known.has(messageId) || (!payload && position < journal.floor())) continue
      const item = { ...newItem(messageId, details), acceptedAt: at }
      items.push(payload ? { item, payload } : { item: { ...item, position } })
    }
    await store.commit([...held, ...items.map(({ item, payload }) => itemChange(name, item, payload))])
    for (const { item } of items) inMemory.add(name, item)
    appended(name)
    return items.length
  }

  async function missing(name: string, messages: readonly EarlierMessage[]): Promise<MessageToRepeat[]> {
    const { inOrder, aside } = inMemory.get(name)
    const waiting = [...inOrder, ...aside]
    const known = new Set(waiting.map(({ messageId }) => messageId))
    const positions = new Set(waiting.map(({ position }) => position))
    const others = messages.filter(({ position }) => !positions.has(position))
    const room = Math.max(0, perQueue - waiting.length)
    const newest = others.slice(Math.max(0, others.length - room))
    const found: MessageToRepeat[] = []
    for await (const batch of inBatches(newest, ({ position }) => journal.get(position))) {
      for (const [{ position, at, describe }, message] of batch) {
        const described = message && describe(message)
        if (!described || known.has(described.messageId)) continue
        known.add(described.messageId)
        found.push({ position, at, ...described })
      }
      await nextTurn()
    }
    return found
  }
}

/**
 * Copies the payload of a message below `journal.floor()`, because the journal may remove the message. Undefined: the
 * journal keeps the message, or has removed the message already.
 */
async function copyOf(
  journal: Pick<Journal, 'get' | 'floor'>,
  { position }: { position: number },
): Promise<Buffer | undefined> {
  return position < journal.floor() ? (await journal.get(position))?.payload : undefined
}
