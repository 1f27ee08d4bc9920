import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Bounds, Store } from '../store/store.ts'
import {
  everyPrefix,
  type IndexEntry,
  indexKey,
  journalKey,
  journalPrefix,
  latestPrefix,
  padded,
  positionIn,
  readEntry,
  readIndexEntry,
} from './entry.ts'
import type { Journal } from './journal.ts'
import {
  type InWindow,
  isControlEvent,
  isHistory,
  type KeepingLimits,
  type Reach,
  unkept,
} from './keeping.ts'
import type { RetainedMessages } from './retained.ts'
import type { Returnable } from './returnable.ts'

/** Messages that are removed in one commit. */
const portionSize = 300

/** If more messages of a stream than this are freed at once, its index is read from the beginning. */
const maxFreed = 100

/**
 * The oldest part of a stream, up to `upTo`. No rule keeps these messages. `positions`: the messages that are still
 * stored, because a queue or a retained value names them. A webhook that is down for days can hold thousands. Their
 * index entries are not read again until nothing names them.
 */
interface Held {
  upTo: number
  positions: readonly number[]
}

/** The figures of some streams: bytes of history older than the window, and how many index entries were read. */
interface Found {
  kept: number
  /** Bytes kept of messages that have left the window since the last look. */
  added: number
  /** Bytes removed of messages that were older than the window at the last look. */
  removed: number
  read: number
  /** Some of the streams have messages of which only the newest per topic counts. */
  hasLatest: boolean
}

/** Removes messages that no rule of their stream keeps, except those that a queue or a retained value names. */
export function createRemoving(parts: {
  store: Store
  journal: Journal
  retained: RetainedMessages
  returnable: Returnable
  /** How many messages a stream has in the window. */
  inWindow: (stream: string) => InWindow
  limits: KeepingLimits
}) {
  const { store, journal, retained, returnable, inWindow, limits } = parts
  /** By stream, on the node that trims. Has only messages of which the newest per topic counts. */
  const held = new Map<string, Held>()

  return {
    /** Removes unkept messages of these streams. `before`: the position at which the window began at the last look. */
    async look(streams: Iterable<string>, reach: Reach, before: number): Promise<Found> {
      const found = { kept: 0, added: 0, removed: 0, read: 0, hasLatest: false }
      const over = new Map<number, IndexEntry>()
      const counted: { position: number; bytes: number }[] = []
      const beginnings = new Map<string, Held>()
      for (const stream of streams) {
        // Lets other work proceed after each stream, because there may be thousands.
        await nextTurn()
        const { freed, ...before } = await freedOf(stream)
        const entries = await readIndex(store, stream, {
          window: reach.window,
          after: before.upTo,
          mostControls: limits.queueLimit,
        })
        found.read += freed.length + entries.length
        found.hasLatest ||= before.positions.length > 0 || entries.some(isLatest)
        for (const entry of unkept(entries, inWindow(stream), limits, reach)) over.set(entry.position, entry)
        for (const entry of freed) over.set(entry.position, entry)
        for (const entry of entries) if (isCounted(entry, reach)) counted.push(entry)
        beginnings.set(stream, extended(before, entries, over))
      }
      const gone = await remove(over)
      for (const [stream, { upTo, positions }] of beginnings) {
        const left = positions.filter((position) => !gone.has(position))
        if (left.length > 0) held.set(stream, { upTo, positions: left })
        else held.delete(stream)
      }
      for (const { position, bytes } of counted) {
        // A message that no rule keeps is no history any more, even if something names it.
        const isKept = !over.has(position)
        if (isKept) found.kept += bytes
        if (isKept && position >= before) found.added += bytes
        if (gone.has(position) && position < before) found.removed += bytes
      }
      return found
    },
  }

  /** The known oldest part of a stream. `freed`: messages of this part that no queue names any more. */
  async function freedOf(stream: string): Promise<Held & { freed: IndexEntry[] }> {
    const { upTo, positions } = held.get(stream) ?? { upTo: 0, positions: [] }
    const unnamed = positions.filter((position) => !journal.named.has(position))
    if (unnamed.length > maxFreed) return { upTo: 0, positions: [], freed: [] }
    const freed: IndexEntry[] = []
    for (const position of unnamed) {
      const key = indexKey({ keep: 'latest', stream, position })
      const value = await store.get(key)
      if (value) freed.push(readIndexEntry(key, value))
    }
    const there = new Set(freed.map(({ position }) => position))
    return {
      upTo,
      positions: positions.filter((position) => journal.named.has(position) || there.has(position)),
      freed,
    }
  }

  /**
   * Removes messages, except those that a queue or a retained value names. Returns the positions of the removed
   * messages. A message older than the window never gets named later.
   */
  async function remove(over: ReadonlyMap<number, IndexEntry>): Promise<ReadonlySet<number>> {
    const unnamed = [...over.values()].filter(
      ({ topic, position }) => !journal.named.has(position) && !retained.names(topic, position),
    )
    const going = new Set(unnamed.map(({ position }) => position))
    for (const entry of unnamed) if (await isPayloadNeeded(store, entry, going)) going.delete(entry.position)
    // Removes the newest first, so that the message that holds a shared payload is removed last of those that share it.
    const removed = unnamed
      .filter(({ position }) => going.has(position))
      .sort((a, b) => b.position - a.position)
    for (let from = 0; from < removed.length; from += portionSize) {
      const portion = removed.slice(from, from + portionSize)
      await store.commit(
        portion.flatMap((entry) => [{ del: journalKey(entry.position) }, { del: indexKey(entry) }]),
      )
      for (const { position } of portion) {
        journal.forget(position)
        returnable.remove(position)
      }
    }
    return going
  }
}

/**
 * Reads the index entries of a stream that are older than the window, without the known oldest part up to `after`. If
 * control events are among them, also reads up to `mostControls` entries inside the window, because the limit of valid
 * control events covers both. Returns the newest first.
 */
async function readIndex(
  store: Store,
  stream: string,
  { window, after, mostControls }: { window: number; after: number; mostControls: number },
): Promise<IndexEntry[]> {
  const entries: IndexEntry[] = []
  for (const prefix of [latestPrefix, everyPrefix]) {
    const index = `${prefix}${encodeURIComponent(stream)}/`
    const read = async (bounds: Bounds) => {
      const found: IndexEntry[] = []
      for await (const [key, value] of store.range(index, bounds)) found.push(readIndexEntry(key, value))
      entries.push(...found)
      return found
    }
    const from = prefix === latestPrefix ? padded(after + 1) : undefined
    const older = await read({ from, before: padded(window) })
    if (older.some(isControlEvent)) await read({ from: padded(window), most: mostControls })
  }
  return entries.sort((a, b) => b.position - a.position)
}

/**
 * The payload of an event with several livestreams is stored with the first of its messages. That message stays as long
 * as any of the others. The round over all streams visits it again later.
 */
async function isPayloadNeeded(
  store: Store,
  { position, sharedUpTo }: IndexEntry,
  going: ReadonlySet<number>,
): Promise<boolean> {
  if (sharedUpTo === undefined) return false
  const sharing = { from: padded(position + 1), before: padded(position + sharedUpTo + 1) }
  for await (const [key, value] of store.range(journalPrefix, sharing)) {
    const other = positionIn(key)
    if (!going.has(other) && readEntry(other, value).sharedWith === other - position) return true
  }
  return false
}

/** The known oldest part of a stream, extended by the `entries` that follow it, up to the first that a rule keeps. */
function extended(
  { upTo, positions }: Held,
  entries: readonly IndexEntry[],
  over: ReadonlyMap<number, IndexEntry>,
): Held {
  const behind = entries
    .filter(isLatest)
    .map(({ position }) => position)
    .reverse()
  const kept = behind.findIndex((position) => !over.has(position))
  const added = kept < 0 ? behind : behind.slice(0, kept)
  return { upTo: added.at(-1) ?? upTo, positions: [...positions, ...added] }
}

function isLatest({ keep }: IndexEntry): boolean {
  return keep === 'latest'
}

function isCounted(entry: IndexEntry, { window, historyFrom }: Reach): boolean {
  return isHistory(entry) && entry.position < window && entry.position >= historyFrom
}
