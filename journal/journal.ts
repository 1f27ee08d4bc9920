import type { Message } from '../event/message.ts'
import type { Change, Store } from '../store/store.ts'
import { appendChanges, type Entry, journalPrefix, positionIn, readEntry } from './entry.ts'
import { createNamed } from './named.ts'
import { createReading, withPayloadOf } from './reading.ts'

export type Journal = Awaited<ReturnType<typeof openJournal>>

/** The newest messages stay in memory, because they are soon read again: at least this many, at most twice as many. */
const recentCount = 1_000
/** The same for the bytes of their payloads, if this limit is reached first. */
const recentBytes = 4 * 1024 * 1024
/** A clock that is set back by more than this is taken to have been wrong before, milliseconds. */
const maxBackMs = 24 * 3600 * 1000
/**
 * Opens the journal: all accepted messages, each once, in order. A message gets its position in the commit that accepts
 * it. Each reader keeps its own position; the journal does not know its readers.
 */
export async function openJournal(store: Store) {
  const recent = createRecent()
  const listeners: ((entry: Entry) => void)[] = []
  const everyListeners = new Set<(entry: Entry) => void>()
  /** The last position that this node knows of. It hears of positions in rising order. */
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
     * The time of something that happens now, but never before the newest message was accepted. So times rise with
     * positions, even if the clock of a node is set back. If the newest time is more than `maxBackMs` ahead of the clock,
     * that time was wrong, and the clock counts.
     */
    timeOf(now: number): number {
      newestAt = Math.max(now, newestAt - now > maxBackMs ? now : newestAt)
      return newestAt
    },

    append: (messages: readonly Message[], at: number): Change[] => appendChanges(messages, at),

    /** Takes over messages that this node has just stored, from the position `first` on. */
    appended(messages: readonly Message[], first: number, at: number): Entry[] {
      return messages.map((message, nth) => {
        // Changes the message in place: a copy would stay in memory as long as the message.
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

    /** The whole journal is kept from this position on. Below it, messages are kept by the rules of their streams. */
    floor: (): number => floor,
    raiseFloor(position: number): void {
      floor = Math.max(floor, position)
    },

    /** Reads messages by their positions, and index entries by stream and topic. */
    ...createReading(store, recent.get),

    /** Positions of messages that queues name. They are kept even if no rule keeps them. */
    named: createNamed(),

    /** The message at a position, if it was appended a moment ago. */
    recent: (position: number): Entry | undefined => recent.get(position),

    /** Drops from memory the message at a position, because this node has removed it from the store. */
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

/** Drops the oldest messages all at once: to find its first entry each time, a map would step over all deleted ones. */
function createRecent() {
  let current = new Map<number, Entry>()
  let former = new Map<number, Entry>()
  /** Bytes of the payloads in `current`. */
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
      // The messages of one event share a payload, which counts once: else the last messages could push out the first.
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
