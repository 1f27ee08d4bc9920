import type { Store } from '../../store/store.ts'
import {
  everyPrefix,
  type IndexEntry,
  journalPrefix,
  latestPrefix,
  padded,
  positionIn,
  readEntry,
  readIndexEntry,
} from '../entry.ts'

/** Entries of an index that are read at once. */
const pageSize = 100

/** What the index has of streams before a position, the newest first. */
export async function* newestFirst(
  store: Store,
  streams: readonly string[],
  before: number,
): AsyncGenerator<IndexEntry, undefined> {
  const lines = streams.flatMap((stream) =>
    [latestPrefix, everyPrefix].map((prefix) =>
      createLine(store, `${prefix}${encodeURIComponent(stream)}/`, before),
    ),
  )
  for (;;) {
    let newest: (typeof lines)[number] | undefined
    for (const line of lines) {
      const found = (await line.first())?.position ?? 0
      if (found > ((await newest?.first())?.position ?? 0)) newest = line
    }
    const entry = await newest?.first()
    if (!entry) return
    yield entry
    newest?.drop()
  }
}

/** The index below a prefix, backwards. */
function createLine(store: Store, prefix: string, before: number) {
  let page: IndexEntry[] = []
  let next = 0
  let end = before
  let isOver = false
  return {
    async first(): Promise<IndexEntry | undefined> {
      if (next === page.length && !isOver) {
        const found = await store.last(prefix, pageSize, padded(end))
        page = found.map(([key, value]) => readIndexEntry(key, value))
        next = 0
        end = page.at(-1)?.position ?? end
        isOver = page.length === 0
      }
      return page[next]
    },
    drop(): void {
      next++
    },
  }
}

/**
 * The position from which on messages were accepted at an instant or later: nearly, because the clocks of nodes differ.
 * Found by halving, in as many reads as the head has bits.
 */
export async function positionAt(store: Store, head: number, at: number): Promise<number> {
  let low = 1
  let high = head + 1
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const [found] = await store.last(journalPrefix, 1, padded(middle + 1))
    const position = found ? positionIn(found[0]) : 0
    if (!found || position < low || readEntry(position, found[1]).entry.at < at) low = middle + 1
    else high = position
  }
  return low
}
