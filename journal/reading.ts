import { digitsOf } from '../store/commit.ts'
import { createLocks } from '../store/lock.ts'
import { ownBytes } from '../store/own-bytes.ts'
import type { Store } from '../store/store.ts'
import {
  type Entry,
  type IndexEntry,
  journalKey,
  latestPrefix,
  readEntry,
  readIndexEntry,
  storedEntries,
} from './entry.ts'

/** One call stops after a page: this many bytes of payloads. */
const pageBytes = 256 * 1024
const readAtOnce = 10
/** This many entries of an index are read together. */
const indexPage = 500
/** This many messages are read from the store together, for all readers. */
const readAhead = 500

/** The newest messages in memory. */
interface Recent {
  get(position: number): Entry | undefined
  /** Takes a message that was read from the store, for the next reader. */
  keep(entry: Entry): void
}

/** Reads the journal, from memory where it can. */
export function createJournalReading(store: Store, recent: Recent) {
  /**
   * Readers ask the store one after the other. Sessions that return together want the same messages: the first reader
   * brings them into memory. Thousands of answers at once would also come too late, and would be asked for again.
   */
  const reading = createLocks()

  return {
    /** The message at a position. Undefined: the journal no longer has it. */
    get,

    /**
     * Searches a stream's index `latest/` for messages on `topics`. Finds only messages that were accepted at `since`
     * or later, milliseconds since the epoch. Returns the index entries of the newest `count` messages, the oldest
     * first.
     */
    async latestOf(
      stream: string,
      wanted: { topics: readonly string[]; since: number; count: number },
    ): Promise<IndexEntry[]> {
      const { topics, since, count } = wanted
      const prefix = `${latestPrefix}${encodeURIComponent(stream)}/`
      const found: IndexEntry[] = []
      for (let before = Number.MAX_SAFE_INTEGER; found.length < count; ) {
        const page = await store.last(prefix, indexPage, digitsOf(before))
        const entries = page.map(([key, value]) => readIndexEntry(key, value))
        // A single older entry does not end the search, because clocks of nodes differ.
        if (!entries.some(({ at }) => at >= since)) break
        found.push(...entries.filter(({ topic, at }) => at >= since && topics.includes(topic)))
        before = entries.at(-1)?.position ?? 0
      }
      return found.slice(0, count).reverse()
    },

    /**
     * Reads the messages at these positions, in order, until a page is full. Undefined: the journal does not have the
     * message.
     */
    async getFirst(positions: readonly number[]): Promise<(Entry | undefined)[]> {
      const found: (Entry | undefined)[] = []
      let bytes = 0
      while (found.length < positions.length && bytes < pageBytes) {
        const next = positions.slice(found.length, found.length + readAtOnce)
        const entries = await Promise.all(next.map(get))
        found.push(...entries)
        for (const entry of entries) bytes += entry?.payload.length ?? 0
      }
      return found
    },

    /**
     * Reads the messages after position `after`, up to position `upTo`. Stops at `count` messages, or when a page is
     * full. The returned `upTo`: the result is complete up to there.
     */
    async read(after: number, upTo: number, count: number): Promise<Page> {
      return (
        readMemory(after, upTo, count) ??
        reading.hold('', async () => readMemory(after, upTo, count) ?? readStore(after, upTo, count))
      )
    },
  }

  /** Undefined: the next message is not in memory. */
  function readMemory(after: number, upTo: number, count: number): Page | undefined {
    const page = createPage(after, upTo, count)
    for (let position = after + 1; position <= upTo; position++) {
      const entry = recent.get(position)
      if (!entry || !page.take(entry)) break
    }
    return after >= upTo || page.entries.length > 0 ? page.end() : undefined
  }

  async function readStore(after: number, upTo: number, most: number): Promise<Page> {
    const page = createPage(after, upTo, most)
    const next = storedEntries(store, { from: after + 1, before: upTo + 1, most: readAhead })
    let isFull = false
    let bytes = 0
    let count = 0
    let last = after
    for await (const stored of next) {
      last = stored.entry.position
      const entry = await withPayload(stored)
      if (entry) recent.keep(entry)
      if (entry && !isFull) isFull = !page.take(entry)
      bytes += entry?.payload.length ?? 0
      if (++count === readAhead || bytes >= pageBytes)
        return isFull ? page.end() : { ...page.end(), upTo: last }
    }
    return isFull ? page.end() : { ...page.end(), upTo }
  }

  async function get(position: number): Promise<Entry | undefined> {
    const known = recent.get(position)
    if (known) return known
    const value = await store.get(journalKey(position))
    const entry = value && (await withPayload(readEntry(position, value)))
    if (entry) recent.keep(entry)
    return entry
  }

  async function withPayload({
    entry,
    sharedWith,
  }: ReturnType<typeof readEntry>): Promise<Entry | undefined> {
    if (sharedWith === undefined) return withOwnBytes(entry)
    const holder = await get(entry.position - sharedWith)
    return holder && withPayloadOf(entry, holder)
  }
}

/** Copies the bytes of an entry that stays in memory. */
export function withOwnBytes(entry: Entry): Entry {
  const { payload, refused } = entry
  return {
    ...entry,
    payload: ownBytes(payload),
    ...(refused && { refused: { ...refused, head: ownBytes(refused.head) } }),
  }
}

/** Returns `entry` with the payload that `holder` holds. */
export function withPayloadOf(entry: Entry, { payload, refused }: Entry): Entry {
  return { ...entry, payload, ...(refused && { refused }) }
}

interface Page {
  entries: Entry[]
  upTo: number
}

/** A page of the messages after a position. */
function createPage(after: number, upTo: number, count: number) {
  const entries: Entry[] = []
  let bytes = 0
  return {
    entries,
    /** False: the page is full, and has not taken the message. */
    take(entry: Entry): boolean {
      if (entries.length === count || bytes >= pageBytes) return false
      entries.push(entry)
      bytes += entry.payload.length
      return true
    },
    /** The page, complete up to its last message. */
    end: (): Page => ({ entries, upTo: entries.at(-1)?.position ?? Math.min(after, upTo) }),
  }
}
