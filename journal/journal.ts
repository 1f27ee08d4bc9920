import type { Message } from '../event/message.ts'
import type { Store } from '../store/store.ts'
import { appendChanges, type Entry, journalPrefix, positionIn, readEntry, storedBytes } from './entry.ts'
import { createJournalReading, withOwnBytes, withPayloadOf } from './reading.ts'
import { createReferenceCounts } from './reference-counts.ts'

export type Journal = Awaited<ReturnType<typeof openJournal>>

/**
 * A map of recent messages (`createRecent`) is full at this many messages. Memory has at most two such maps: a full
 * one, and the one that fills now. A retained value of another node's commit is up to `maxLivestreams` messages behind
 * its message. With larger maps, messages live so long that only V8's full collections remove them.
 */
const recentCount = 300
/** A map is also full at this many bytes of payloads, even with fewer messages. */
const recentBytes = 4 * 1024 * 1024
/** The same for messages that were read from the store: all sessions that return to a node read those of some minutes. */
const readAgainCount = 4_000
/** The positions of this many reports stay in memory: some seconds at the highest rate. */
const recentReportCount = 65_536
/** A message further ahead of the clock than this has a wrong time, milliseconds. */
const maxBackMs = 24 * 3600 * 1000
/** Opens the journal: every accepted message once, in the order of acceptance. Readers keep their own positions. */
export async function openJournal(store: Store) {
  const readAgain = createRecent(readAgainCount)
  // A full `recent` clears `readAgain`. By then, the sessions that returned together need it no longer.
  const recent = createRecent(recentCount, readAgain.clear)
  const listeners: ((entry: Entry) => void)[] = []
  const everyListeners = new Set<(entry: Entry, bytes: number) => void>()
  /** The last position that this node knows of. */
  let head = await store.lastNumber()
  let floor = 1
  const reports = createRecentReports(head)
  /** When the newest message was accepted, milliseconds since the epoch. */
  let newestAt = await lastAt(store)
  /** The last message of another node that holds its payload. The messages behind it may share that payload. */
  let holder: Entry | undefined
  store.onOthers(journalPrefix, (key, value) => {
    if (!value) return forget(positionIn(key))
    const { entry, sharedWith = 0 } = readEntry(positionIn(key), value)
    if (sharedWith === 0) holder = withOwnBytes(entry)
    if (holder?.position !== entry.position - sharedWith)
      throw new Error(`the payload of message ${entry.position} is missing`)
    const whole = sharedWith === 0 ? holder : withPayloadOf(entry, holder)
    take(whole, value.length)
    for (const listener of listeners) listener(whole)
  })

  return {
    timeOf,

    /**
     * Prepares messages for the end of the journal (`commitTogether`). `at`: when they are accepted. `stored` takes the
     * position of the first message, and returns the entries.
     */
    append(messages: readonly Message[], now: number) {
      const at = timeOf(now)
      const changes = appendChanges(messages, at)
      return {
        at,
        changes,
        stored: (first: number): Entry[] =>
          messages.map((message, nth) => {
            // Adds the fields of an entry to the message itself. A separate copy would take memory for as long as the
            // message does.
            const entry = Object.assign(message, { position: first + nth, at })
            take(entry, storedBytes(changes, nth))
            return entry
          }),
      }
    },

    /** Calls `listener` with each message that another node appends, in order. */
    onAppended: (listener: (entry: Entry) => void): void => void listeners.push(listener),

    /**
     * Calls `listener` with each message that any node appends, and its stored bytes. The returned function ends the
     * calls.
     */
    onEach(listener: (entry: Entry, bytes: number) => void): () => void {
      everyListeners.add(listener)
      return () => void everyListeners.delete(listener)
    },

    /** The position of the last message that this node knows of. */
    head: (): number => head,

    /** The journal has every message from this position on. */
    floor: (): number => floor,
    raiseFloor(position: number): void {
      floor = Math.max(floor, position)
    },

    /** Reads messages by their positions, and index entries by stream and topic. */
    ...createJournalReading(store, { get: inMemory, keep: keepAgain }),

    /** References of queue items to their messages, which wait for a webhook or plugin target. */
    neededByQueues: createReferenceCounts(),

    /** The message at a position, if it is still in memory. */
    recent: inMemory,

    /** Finds the reports after a position, among the newest: see `createRecentReports`. */
    reportsAfter: reports.after,

    /** Drops the message at a position from memory, after its removal from the store. */
    forget,
  }

  /**
   * Returns the time of a message that is accepted now: `now`, or the newest message's time if later. So times rise with
   * positions, even if a clock is set back by up to `maxBackMs`.
   */
  function timeOf(now: number): number {
    newestAt = Math.max(now, newestAt - now > maxBackMs ? now : newestAt)
    return newestAt
  }

  /** Keeps a message that was read from the store. Below `floor`, the message may be removed meanwhile. */
  function keepAgain(entry: Entry): void {
    if (entry.position >= floor) readAgain.keep(entry)
  }

  function inMemory(position: number): Entry | undefined {
    return recent.get(position) ?? readAgain.get(position)
  }

  function forget(position: number): void {
    recent.forget(position)
    readAgain.forget(position)
  }

  function take(entry: Entry, bytes: number): void {
    head = Math.max(head, entry.position)
    newestAt = Math.max(newestAt, entry.at)
    recent.keep(entry)
    if (entry.isReport) reports.add(entry.position)
    for (const listener of everyListeners) listener(entry, bytes)
  }
}

async function lastAt(store: Store): Promise<number> {
  const [last] = await store.last(journalPrefix, 1)
  return last ? readEntry(positionIn(last[0]), last[1]).entry.at : 0
}

/**
 * The newest messages, in two maps. When `current` is full, it becomes `former`, and the old `former` is dropped. In a
 * single map, finding the oldest entry would mean stepping over all deleted ones.
 */
function createRecent(mostCount: number, onFull = () => {}) {
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
    clear(): void {
      current = new Map()
      former = new Map()
      bytes = 0
    },
    keep(entry: Entry): void {
      const { payload, refused, position } = entry
      // A shared payload counts once. Otherwise the last messages of an event could push the first ones out.
      const own = payload === lastPayload ? 0 : payload.length + (refused?.head.length ?? 0)
      lastPayload = payload
      if (current.size >= mostCount || (own > 0 && bytes >= recentBytes)) {
        former = current
        current = new Map()
        bytes = 0
        onFull()
      }
      bytes += own
      current.set(position, entry)
    },
  }
}

/**
 * The positions of the newest reports, for clients that poll for new events. `head`: the last position of the journal
 * so far.
 */
export function createRecentReports(head: number) {
  const positions = new Float64Array(recentReportCount)
  let count = 0
  /** All reports after this position are in memory. */
  let knownFrom = head

  return {
    /** Notes a report, in the order of positions. */
    add(position: number): void {
      if (count >= recentReportCount) knownFrom = at(count)
      positions[count++ % recentReportCount] = position
    },

    /**
     * The newest reports after a position, at most `limit`, in order. `leftOut`: how many more there were. Null:
     * unknown, because memory does not reach back so far.
     */
    after(position: number, limit: number): { found: number[]; leftOut: number | null } {
      const first = firstAfter(position)
      const from = Math.max(first, count - limit)
      const found = Array.from({ length: count - from }, (_, nth) => at(from + nth))
      return { found, leftOut: position < knownFrom ? null : from - first }
    },
  }

  function firstAfter(position: number): number {
    let low = Math.max(0, count - recentReportCount)
    let high = count
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      if (at(middle) > position) high = middle
      else low = middle + 1
    }
    return low
  }

  function at(nth: number): number {
    return positions[nth % recentReportCount] ?? 0
  }
}
