import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Journal } from '../../journal/journal.ts'
import type { InLock } from '../../store/lock.ts'
import type { Nodes } from '../../store/nodes/nodes.ts'
import { type Change, ConditionFailed, type Store } from '../../store/store.ts'
import { inBatches } from './batches.ts'
import { emptyQueue } from './queue.ts'
import type { loadQueues } from './queues-in-memory.ts'
import type { Details, EarlierMessage, WorkItem } from './work-item.ts'
import { deadPrefix, itemChange, readPayload, removal } from './work-records.ts'

/** A message that is to be sent again. */
type Owed = Pick<EarlierMessage, 'position' | 'at'> & Pick<WorkItem, 'messageId' | 'details'>

/** For a replay while other nodes replay from the same queue. */
const maxReplays = 3

/**
 * Puts at the end of the line what is to be sent again. It has its payload, unless the journal keeps all messages from
 * there on and the item can name its own. Called in the turn of the queue.
 */
export function createReplays(parts: {
  store: Store
  journal: Pick<Journal, 'get' | 'floor'>
  nodes: Pick<Nodes, 'isShared'>
  inMemory: Pick<Awaited<ReturnType<typeof loadQueues>>, 'queues' | 'add' | 'takeLetters'>
  newItem: (messageId: string, details: Details) => WorkItem
  /** Items of one queue. */
  perQueue: number
  appended: (queue: string) => void
  /** One portion after another, on all nodes. */
  inLock: InLock
}) {
  const { store, journal, nodes, inMemory, newItem, perQueue, appended, inLock } = parts
  /** Of what another node may remove. */
  const stillThere = nodes.isShared ? 'present' : undefined

  return {
    /** Dead letters, all or one; how many. */
    letters: (name: string, messageId?: string): Promise<number> => replay(name, messageId, maxReplays),

    /**
     * What was accepted earlier and does not wait already: the newest, as many as there is room for. How many. `first` is
     * told so before anything is changed.
     */
    async earlier(
      name: string,
      messages: readonly EarlierMessage[],
      first: (count: number) => Promise<void>,
    ): Promise<number> {
      const owed = await missing(name, messages)
      await first(owed.length)
      let repeated = 0
      for await (const portion of inBatches(owed, (message) => copyOf(journal, message))) {
        repeated += await inLock((held) => add(name, portion, held))
      }
      return repeated
    },
  }

  async function replay(name: string, messageId: string | undefined, tries: number): Promise<number> {
    const { dead } = inMemory.queues.get(name) ?? emptyQueue()
    const all = dead.filter((letter) => messageId === undefined || letter.messageId === messageId)
    let replayed = 0
    try {
      for await (const portion of inBatches(all, (letter) => readPayload(store, deadPrefix, name, letter))) {
        const letters = portion.map(([letter]) => letter)
        const items = portion.map(([{ messageId, details, acceptedAt, enqueuedAt }, payload]) => {
          const item = { ...newItem(messageId, details), acceptedAt: acceptedAt ?? enqueuedAt }
          return { item, payload }
        })
        await store.commit([
          ...letters.map((letter) => removal(deadPrefix, name, letter, stillThere)),
          ...items.map(({ item, payload }) => itemChange(name, item, payload)),
        ])
        inMemory.takeLetters(name, letters)
        show(name, items)
        replayed += items.length
      }
      return replayed
    } catch (error) {
      if (!(error instanceof ConditionFailed) || tries === 1) throw error
      // Another node has replayed or removed one of them, and this one has heard of it.
      return replayed + (await replay(name, messageId, tries - 1))
    }
  }

  /** Adds a portion; how many. */
  async function add(
    name: string,
    portion: readonly (readonly [Owed, Buffer | undefined])[],
    held: readonly Change[],
  ): Promise<number> {
    // Another node may have repeated the same a moment ago.
    const { line, aside } = nodes.isShared ? (inMemory.queues.get(name) ?? emptyQueue()) : emptyQueue()
    const known = new Set([...line, ...aside].map(({ messageId }) => messageId))
    const items: { item: WorkItem; payload?: Buffer }[] = []
    for (const [message, copied] of portion) {
      const { position, at, messageId, details } = message
      const payload = copied ?? (await copyOf(journal, message))
      // Removed meanwhile.
      if (known.has(messageId) || (!payload && position < journal.floor())) continue
      const item = { ...newItem(messageId, details), acceptedAt: at }
      items.push(payload ? { item, payload } : { item: { ...item, position } })
    }
    await store.commit([...held, ...items.map(({ item, payload }) => itemChange(name, item, payload))])
    show(name, items)
    return items.length
  }

  /** Those of the messages that do not wait, without their payloads. */
  async function missing(name: string, messages: readonly EarlierMessage[]): Promise<Owed[]> {
    const { line, aside } = inMemory.queues.get(name) ?? emptyQueue()
    const waiting = [...line, ...aside]
    const known = new Set(waiting.map(({ messageId }) => messageId))
    const positions = new Set(waiting.map(({ position }) => position))
    const others = messages.filter(({ position }) => !positions.has(position))
    const room = Math.max(0, perQueue - waiting.length)
    const newest = others.slice(Math.max(0, others.length - room))
    const found: Owed[] = []
    for await (const portion of inBatches(newest, ({ position }) => journal.get(position))) {
      for (const [{ position, at, describe }, message] of portion) {
        const described = message && describe(message)
        if (!described || known.has(described.messageId)) continue
        known.add(described.messageId)
        found.push({ position, at, ...described })
      }
      await nextTurn()
    }
    return found
  }

  function show(name: string, items: readonly { item: WorkItem }[]): void {
    for (const { item } of items) inMemory.add(name, item)
    appended(name)
  }
}

/** The payload of a message that the journal may let go of. */
async function copyOf(
  journal: Pick<Journal, 'get' | 'floor'>,
  { position }: { position: number },
): Promise<Buffer | undefined> {
  return position < journal.floor() ? (await journal.get(position))?.payload : undefined
}
