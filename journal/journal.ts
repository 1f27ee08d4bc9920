import type { Message } from '../event/message.ts'
import type { Change, Store } from '../store/store.ts'
import { appendChanges, type Entry, journalPrefix, positionIn, readEntry } from './entry.ts'
import { createNamed } from './named.ts'
import { createReading, withPayloadOf } from './reading.ts'

export type Journal = Awaited<ReturnType<typeof openJournal>>

/** The newest messages stay in memory, because readers soon need them: at least this many, at most twice as many. */
const recentCount = 1_000
/** The same limit for the bytes of the payloads of these messages. The limit that is reached first counts. */
const recentBytes = 4 * 1024 * 1024
/** The positions of this many reports stay in memory. Even at the highest rate of events, they cover some seconds. */
const recentReportCount = 65_536
/** The newest message may be this far ahead of the clock, milliseconds. Beyond that, its time counts as wrong. */
const maxBackMs = 24 * 3600 * 1000
/**
 * Opens the journal. It contains all accepted messages, each once, in the order of acceptance. The commit that stores a
 * message gives the message its position. Each reader keeps its own position, so the journal does not know its readers.
 */
export async function openJournal(store: Store) {
  const recent = createRecent()
  const listeners: ((entry: Entry) => void)[] = []
  const everyListeners = new Set<(entry: Entry) => void>()
  /** The last position that this node knows of. The node learns of positions in rising order. */
  let head = await store.lastNumber()
  let floor = 1
  const reports = createRecentReports(head)
  /** When the newest message was accepted, milliseconds since the epoch. */
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
     * Returns the time of a message that is accepted now: `now`, or the time of the newest message if that is later. So
     * times rise with positions, even if someone sets the clock of a node back. If the newest message is more than
     * `maxBackMs` ahead of `now`, its time was wrong, and `now` counts.
     */
    timeOf(now: number): number {
      newestAt = Math.max(now, newestAt - now > maxBackMs ? now : newestAt)
      return newestAt
    },

    append: (messages: readonly Message[], at: number): Change[] => appendChanges(messages, at),

    /** Call it when this node has stored `messages`, from the position `first` on. Returns their entries. */
    appended(messages: readonly Message[], first: number, at: number): Entry[] {
      return messages.map((message, nth) => {
        // Adds the fields to the message itself. A copy would take up memory as well, for as long as the message.
        const entry = Object.assign(message, { position: first + nth, at })
        take(entry)
        return entry
      })
    },

    /** Calls `listener` with each message that another node appends, in order. */
    onAppended: (listener: (entry: Entry) => void): void => void listeners.push(listener),

    /** Calls `listener` with each message that any node appends from now on. The returned function ends this. */
    onEach(listener: (entry: Entry) => void): () => void {
      everyListeners.add(listener)
      return () => void everyListeners.delete(listener)
    },

    /** The position of the last message that this node knows of. */
    head: (): number => head,

    /** The journal has every message from this position on, and may remove older ones that no rule keeps. */
    floor: (): number => floor,
    raiseFloor(position: number): void {
      floor = Math.max(floor, position)
    },

    /** Reads messages by their positions, and index entries by stream and topic. */
    ...createReading(store, recent.get),

    /**
     * Positions of messages that wait for a webhook or plugin target. The journal keeps these messages even if no rule
     * (`keeping.ts`) does.
     */
    neededByQueues: createNamed(),

    /** The message at a position, if it is one of the newest messages, which are in memory. */
    recent: (position: number): Entry | undefined => recent.get(position),

    /** Finds the reports after a position, among the newest: see `createRecentReports`. */
    reportsAfter: reports.after,

    /** Drops the message at a position from memory. Call it when this node has removed the message from the store. */
    forget: recent.forget,
  }

  function take(entry: Entry): void {
    head = Math.max(head, entry.position)
    newestAt = Math.max(newestAt, entry.at)
    recent.keep(entry)
    if (entry.isReport) reports.add(entry.position)
    for (const listener of everyListeners) listener(entry)
  }
}

async function lastAt(store: Store): Promise<number> {
  const [last] = await store.last(journalPrefix, 1)
  return last ? readEntry(positionIn(last[0]), last[1]).entry.at : 0
}

/**
 * The newest messages, in two maps. When `current` is full, it becomes `former`, and the old `former` is dropped as a
 * whole. A single map would step over all deleted entries each time it looks for its oldest entry.
 */
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
      // The messages of one event share a payload, which counts only once. Otherwise the last messages of an event with
      // many livestreams could push the first ones out of memory.
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

/**
 * The positions of the newest reports, for clients that poll for new events. Each event costs only one number in
 * memory. `head`: the last position of the journal so far.
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
     * The newest reports after a position, at most `limit`, in order. `leftOut`: how many more there were. Null: not
     * known, because the position is too old, or from before the start of this node.
     */
    after(position: number, limit: number): { found: number[]; leftOut: number | null } {
      const first = firstAfter(position)
      const from = Math.max(first, count - limit)
      const found = Array.from({ length: count - from }, (_, nth) => at(from + nth))
      return { found, leftOut: position < knownFrom ? null : from - first }
    },
  }

  /**
   * The index of the first report after a position, among those in memory. The first report since the start has index
   * 0.
   */
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
