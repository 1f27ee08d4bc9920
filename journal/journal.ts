import type { Message } from '../event/message.ts'
import type { Change, Store } from '../store/store.ts'
import { appendChanges, type Entry, journalPrefix, positionIn, readEntry } from './entry.ts'
import { createNamed } from './named.ts'
import { createReading, withPayloadOf } from './reading.ts'

export type Journal = Awaited<ReturnType<typeof openJournal>>

/** Messages that are read again within moments stay in memory: this many at least, and twice as many at most. */
const recentCount = 1_000
/** Bytes of their payloads, in the same way. */
const recentBytes = 4 * 1024 * 1024
/** A clock that is set back by more than this was wrong before, milliseconds. */
const maxBackMs = 24 * 3600 * 1000
/**
 * All accepted messages, each once, in order. A message gets its position in the commit that accepts it. Readers keep
 * their own place; the journal knows none of them.
 */
export async function openJournal(store: Store) {
  const recent = createRecent()
  const listeners: ((entry: Entry) => void)[] = []
  const everyListeners = new Set<(entry: Entry) => void>()
  /** The last position that this node knows of. It hears of no earlier one later. */
  let head = await store.lastNumber()
  let floor = 1
  /** When the newest message was accepted. */
  let newestAt = await lastAt(store)
  store.onOthers(journalPrefix, (change) => {
    if ('tell' in change) return
    if ('del' in change) return recent.forget(positionIn(change.del))
    const { entry, sharedWith } = readEntry(positionIn(change.put), change.value)
    const whole =
      sharedWith === undefined ? entry : withPayloadOf(entry, recent.get(entry.position - sharedWith))
    if (!whole) throw new Error(`the payload of message ${entry.position} is missing`)
    take(whole)
    for (const listener of listeners) listener(whole)
  })

  return {
    /**
     * The time of something that happens now: never before the newest message was accepted. So times rise with positions,
     * even where the clock of a node is set back. A clock that is set back by more than `maxBackMs` was wrong before.
     */
    timeOf(now: number): number {
      newestAt = Math.max(now, newestAt - now > maxBackMs ? now : newestAt)
      return newestAt
    },

    append: (messages: readonly Message[], at: number): Change[] => appendChanges(messages, at),

    /** Messages that this node has appended are stored, from the position `first` on. */
    appended(messages: readonly Message[], first: number, at: number): Entry[] {
      return messages.map((message, nth) => {
        // In place: a copy of each message would be as long in memory as the message.
        const entry = Object.assign(message, { position: first + nth, at })
        take(entry)
        return entry
      })
    },

    /** Calls back with each message that another node has appended, in order. */
    onAppended: (listener: (entry: Entry) => void): void => void listeners.push(listener),

    /** Calls back with each message from now on, whichever node appends it. Returns the function that ends this. */
    onEach(listener: (entry: Entry) => void): () => void {
      everyListeners.add(listener)
      return () => void everyListeners.delete(listener)
    },

    /** The position of the last message that this node knows of. */
    head: (): number => head,

    /** The position from which on the whole journal is kept. Below it, messages are kept by the rules of their streams. */
    floor: (): number => floor,
    raiseFloor(position: number): void {
      floor = Math.max(floor, position)
    },

    /** Messages by their positions, and index entries by stream and topic. */
    ...createReading(store, recent.get),

    /** Messages that are kept although no rule keeps them. */
    named: createNamed(),

    /** The message at a position, if it was appended a moment ago. */
    recent: (position: number): Entry | undefined => recent.get(position),

    /** This node has removed the message at a position. */
    forget: recent.forget,
  }

  function take(entry: Entry): void {
    head = Math.max(head, entry.position)
    newestAt = Math.max(newestAt, entry.at)
    recent.keep(entry)
    for (const listener of everyListeners) listener(entry)
  }
}

async function lastAt(store: Store): Promise<number> {
  const [last] = await store.last(journalPrefix, 1)
  return last ? readEntry(positionIn(last[0]), last[1]).entry.at : 0
}

/** The oldest go together: to find its first entry each time, a map would pass all deleted ones. */
function createRecent() {
  let current = new Map<number, Entry>()
  let former = new Map<number, Entry>()
  /** Of the current ones. */
  let bytes = 0
  let lastPayload: Buffer | undefined

  return {
    get: (position: number): Entry | undefined => current.get(position) ?? former.get(position),
    forget(position: number): void {
      current.delete(position)
      former.delete(position)
    },
    keep(entry: Entry): void {
      const { payload, refused, position } = entry
      // The messages of one event share a payload. Counted for each, it would push out the first before the last is there.
      const own = payload === lastPayload ? 0 : payload.length + (refused?.head.length ?? 0)
      lastPayload = payload
      if (current.size >= recentCount || (own > 0 && bytes >= recentBytes)) {
        former = current
        current = new Map()
        bytes = 0
      }
      bytes += own
      current.set(position, entry)
    },
  }
}
