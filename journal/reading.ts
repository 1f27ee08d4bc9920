import type { Store } from '../store/store.ts'
import {
  type Entry,
  type IndexEntry,
  journalKey,
  journalPrefix,
  latestPrefix,
  positionIn,
  readEntry,
  readIndexEntry,
} from './entry.ts'

/** One call stops after a page: this many bytes of payloads. */
const pageBytes = 256 * 1024
const readAtOnce = 10
/** This many entries of an index are read together. */
const indexPage = 500

/** The newest messages in memory. */
interface Recent {
  get(position: number): Entry | undefined
  /** Takes a message that was read from the store, for the next reader. */
  keep(entry: Entry): void
}

/** Reads the journal, from memory where it can. */
export function createJournalReading(store: Store, recent: Recent) {
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
        const page = await store.last(prefix, indexPage, keyPart(before))
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
    async read(after: number, upTo: number, count: number): Promise<{ entries: Entry[]; upTo: number }> {
      const entries: Entry[] = []
      let bytes = 0
      const isFull = () => entries.length === count || bytes >= pageBytes
      const take = (entry: Entry) => {
        entries.push(entry)
        bytes += entry.payload.length
      }
      for (let position = after + 1; position <= upTo && !isFull(); position++) {
        const entry = recent.get(position)
        if (!entry) break
        take(entry)
      }
      const from = entries.at(-1)?.position ?? after
      if (from >= upTo) return { entries, upTo }
      if (isFull()) return { entries, upTo: from }
      const stored = { from: keyPart(from + 1), before: keyPart(upTo + 1) }
      for await (const [key, value] of store.range(journalPrefix, stored)) {
        if (isFull()) return { entries, upTo: positionIn(key) - 1 }
        const entry = await withPayload(positionIn(key), value)
        if (!entry) continue
        recent.keep(entry)
        take(entry)
      }
      return { entries, upTo }
    },
  }

  async function get(position: number): Promise<Entry | undefined> {
    const known = recent.get(position)
    if (known) return known
    const value = await store.get(journalKey(position))
    const entry = value && (await withPayload(position, value))
    if (entry) recent.keep(entry)
    return entry
  }

  async function withPayload(position: number, value: Buffer): Promise<Entry | undefined> {
    const { entry, sharedWith } = readEntry(position, value)
    if (sharedWith === undefined) return withOwnBytes(entry)
    return withPayloadOf(entry, await get(position - sharedWith))
  }
}

/**
 * Copies the bytes of an entry that stays in memory. What Redis answers comes in large pieces, of which a value is a
 * part: a small payload would keep all of its piece.
 */
function withOwnBytes(entry: Entry): Entry {
  const { payload, refused } = entry
  return {
    ...entry,
    payload: copyOf(payload),
    ...(refused && { refused: { ...refused, head: copyOf(refused.head) } }),
  }
}

/** `Buffer.from` would put small copies together into pieces of 8 KiB. */
function copyOf(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(copy)
  return copy
}

/** Returns `entry` with the payload that `other` holds. Undefined: there is no `other`. */
export function withPayloadOf(entry: Entry, other: Entry | undefined): Entry | undefined {
  return other && { ...entry, payload: other.payload, ...(other.refused && { refused: other.refused }) }
}

function keyPart(position: number): string {
  return journalKey(position).slice(journalPrefix.length)
}
