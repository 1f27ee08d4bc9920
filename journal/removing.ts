import { setImmediate as nextTurn } from 'node:timers/promises'
import { digitsOf } from '../store/commit.ts'
import type { Bounds, Store } from '../store/store.ts'
import {
  everyPrefix,
  type IndexEntry,
  indexKey,
  journalKey,
  latestPrefix,
  readIndexEntry,
  storedEntries,
} from './entry.ts'
import type { Journal } from './journal.ts'
import {
  type InWindow,
  isControlEvent,
  isHistory,
  type KeepingLimits,
  type KeptFrom,
  unkept,
} from './keeping.ts'
import type { RetainedMessages } from './retained.ts'
import type { Returnable } from './returnable.ts'

/** One commit removes at most this many messages. */
const portionSize = 300

/**
 * A message is freed when no queue refers to it any more. If more messages than this are freed, a check reads the stream's
 * whole index.
 */
const maxFreed = 100

/**
 * The oldest messages in a stream's index `latest/`, up to position `upTo`. No rule keeps these messages. `positions`:
 * the messages of this part that are still stored, because a queue, a retained value or another message with the same
 * payload needs them.
 *
 * A dead webhook can hold back thousands of messages. So the node remembers this part. The next check skips the index
 * entries of messages that a queue still refers to.
 */
interface OldestPart {
  upTo: number
  positions: readonly number[]
}

/**
 * The result of a check of some streams. `kept`: bytes of their history before the window. `read`: number of index
 * entries.
 */
interface Found {
  kept: number
  /** The part of `kept` that has left the window since the last check. */
  added: number
  /** Bytes of removed messages that had already left the window at the last check. */
  removed: number
  read: number
  /** Whether one of the streams has messages in the index `latest/`. */
  hasLatest: boolean
}

/** Removes messages that no rule, queue or retained value needs. */
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
  /** The known oldest part of each stream. Only the node that trims fills this map. */
  const oldestParts = new Map<string, OldestPart>()

  return {
    /** Trims these streams. `before`: where the window began at the last check. */
    async trimStreams(streams: Iterable<string>, reach: KeptFrom, before: number): Promise<Found> {
      const found = { kept: 0, added: 0, removed: 0, read: 0, hasLatest: false }
      const over = new Map<number, IndexEntry>()
      const counted: { position: number; bytes: number }[] = []
      const beginnings = new Map<string, OldestPart>()
      for (const stream of streams) {
        // Lets other work proceed before each stream, because there may be thousands of streams.
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
        if (left.length > 0) oldestParts.set(stream, { upTo, positions: left })
        else oldestParts.delete(stream)
      }
      for (const { position, bytes } of counted) {
        // Messages that no rule keeps do not count as history, even if they are still stored.
        const isKept = !over.has(position)
        if (isKept) found.kept += bytes
        if (isKept && position >= before) found.added += bytes
        if (gone.has(position) && position < before) found.removed += bytes
      }
      return found
    },
  }

  /** The known oldest part of a stream. `freed`: messages of this part that no queue refers to. */
  async function freedOf(stream: string): Promise<OldestPart & { freed: IndexEntry[] }> {
    const { upTo, positions } = oldestParts.get(stream) ?? { upTo: 0, positions: [] }
    const unreferenced = positions.filter((position) => !journal.neededByQueues.has(position))
    if (unreferenced.length > maxFreed) return { upTo: 0, positions: [], freed: [] }
    const freed: IndexEntry[] = []
    for (const position of unreferenced) {
      const key = indexKey({ keep: 'latest', stream, position })
      const value = await store.get(key)
      if (value) freed.push(readIndexEntry(key, value))
    }
    const there = new Set(freed.map(({ position }) => position))
    return {
      upTo,
      positions: positions.filter((position) => journal.neededByQueues.has(position) || there.has(position)),
      freed,
    }
  }

  /**
   * Removes messages that no queue and no retained value refers to. Keeps a message whose payload another message still
   * needs. Returns the positions of the removed messages.
   *
   * Outside the window, no queue or retained value begins to refer to a message. So an unreferenced message stays so.
   */
  async function remove(over: ReadonlyMap<number, IndexEntry>): Promise<ReadonlySet<number>> {
    const unreferenced = [...over.values()].filter(
      ({ topic, position }) => !journal.neededByQueues.has(position) && !retained.refersTo(topic, position),
    )
    const going = new Set(unreferenced.map(({ position }) => position))
    for (const entry of unreferenced)
      if (await isPayloadNeeded(store, entry, going)) going.delete(entry.position)
    // Removes the newest messages first, because each portion has its own commit. No message may stay when the earlier
    // message that holds its payload is gone.
    const removed = unreferenced
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
 * Reads a stream's index entries before the window, without the known oldest part up to `after`. If there are control
 * events, also reads up to `mostControls` entries inside the window, for the limit of valid control events. The newest
 * come first.
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
      for await (const [key, value] of store.range(index, bounds)) entries.push(readIndexEntry(key, value))
    }
    const from = prefix === latestPrefix ? digitsOf(after + 1) : undefined
    await read({ from, before: digitsOf(window) })
    if (entries.some(isControlEvent)) await read({ from: digitsOf(window), most: mostControls })
  }
  return entries.sort((a, b) => b.position - a.position)
}

/** Whether another message needs the payload that this message holds. If so, a later check removes this message. */
async function isPayloadNeeded(
  store: Store,
  { position, sharedUpTo }: IndexEntry,
  going: ReadonlySet<number>,
): Promise<boolean> {
  if (sharedUpTo === undefined) return false
  const sharing = { from: position + 1, before: position + sharedUpTo + 1 }
  for await (const { entry, sharedWith } of storedEntries(store, sharing)) {
    if (!going.has(entry.position) && sharedWith === entry.position - position) return true
  }
  return false
}

/**
 * Extends the known oldest part of a stream up to the first entry that a rule keeps. `over`: the messages that no rule
 * keeps.
 */
function extended(
  { upTo, positions }: OldestPart,
  entries: readonly IndexEntry[],
  over: ReadonlyMap<number, IndexEntry>,
): OldestPart {
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

function isCounted(entry: IndexEntry, { window, historyFrom }: KeptFrom): boolean {
  return isHistory(entry) && entry.position < window && entry.position >= historyFrom
}
