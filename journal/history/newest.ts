import { digitsOf } from '../../store/commit.ts'
import type { Store } from '../../store/store.ts'
import {
  type IndexEntry,
  indexPrefix,
  journalPrefix,
  positionIn,
  readEntry,
  readIndexEntry,
} from '../entry.ts'

/**
 * Number of index entries that are read together. The first page is small, because most merged indexes contribute few.
 */
const pageSizes = { first: 10, most: 100 }

/** Yields the index entries below all these prefixes before position `before`, the newest first. */
export async function* newestFirst(
  store: Store,
  prefixes: readonly string[],
  before: number,
): AsyncGenerator<IndexEntry, undefined> {
  const lines = prefixes.map((prefix) => backwards(store, prefix, before))
  const heads = await Promise.all(lines.map((line) => line.next()))
  for (;;) {
    let newest = 0
    for (const [nth, { value }] of heads.entries()) {
      if (value && value.position > (heads[newest]?.value?.position ?? 0)) newest = nth
    }
    const [entry, line] = [heads[newest]?.value, lines[newest]]
    if (!entry || !line) return
    yield entry
    heads[newest] = await line.next()
  }
}

/** The index prefixes below which the messages of a stream are listed. */
export function indexesOf(stream: string): string[] {
  return (['latest', 'every'] as const).map((keep) => indexPrefix({ queue: { keep }, topic: stream }))
}

async function* backwards(
  store: Store,
  prefix: string,
  before: number,
): AsyncGenerator<IndexEntry, undefined> {
  let end = before
  for (let size = pageSizes.first; ; size = Math.min(2 * size, pageSizes.most)) {
    const page = await store.last(prefix, size, digitsOf(end))
    if (page.length === 0) return
    for (const [key, value] of page) {
      const entry = readIndexEntry(key, value)
      end = entry.position
      yield entry
    }
  }
}

/**
 * Returns the first position whose message was accepted at `at` or later, milliseconds since the epoch. The result is
 * not exact, because clocks of nodes differ.
 */
export async function positionAt(store: Store, head: number, at: number): Promise<number> {
  let low = 1
  let high = head + 1
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const [found] = await store.last(journalPrefix, 1, digitsOf(middle + 1))
    const position = found ? positionIn(found[0]) : 0
    if (!found || position < low || readEntry(position, found[1]).entry.at < at) low = middle + 1
    else high = position
  }
  return low
}
