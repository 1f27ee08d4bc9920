import type { Store } from '../store/store.ts'
import { type Entry, storedEntries } from './entry.ts'
import type { Journal } from './journal.ts'
import { type InWindow, isHistory } from './keeping.ts'

/**
 * Counts the messages that each stream has in the window (`keeping.ts`). Without these counts in memory, every check of
 * a stream would read the whole stream. A message that is appended from now on is counted as it comes. Those before it
 * are read from the store once, when this node begins to trim.
 */
export function createCounting(store: Store, journal: Pick<Journal, 'head' | 'onEach'>) {
  const streams = new Map<string, InWindow>()
  /** Where the window begins. Undefined: nothing is counted. */
  let from: number | undefined
  /** Messages before this position are read from the store, those from there on are counted as they come. */
  let appendedFrom = Infinity
  /** The messages up to just before this position have been read. */
  let readTo = 0
  /** Bytes of the messages that were appended since the last call of `advance`. */
  let appendedBytes = 0
  journal.onEach((entry, bytes) => {
    if (entry.position < appendedFrom) return
    change(entry, 1)
    appendedBytes += bytes
  })

  return {
    /** Sets where the window begins. If another node has moved the window, `advance` counts anew. */
    beginAt(position: number): void {
      if (position === from) return
      streams.clear()
      from = position
      readTo = position
      appendedFrom = journal.head() + 1
      appendedBytes = 0
    },

    /** Forgets all counts: the next `beginAt` counts anew. */
    forget(): void {
      from = undefined
      appendedFrom = Infinity
    },

    /**
     * Counts the messages that have come, and reads at most `most` of the earlier ones. Returns the position up to which
     * all are counted, and the bytes of those after position `known`.
     */
    async advance(known: number, most: number): Promise<{ upTo: number; bytes: number }> {
      let bytes = 0
      let count = 0
      if (readTo < appendedFrom) {
        for await (const stored of storedEntries(store, { from: readTo, before: appendedFrom })) {
          if (count++ === most) return { upTo: readTo - 1, bytes }
          const { position } = stored.entry
          change(stored.entry, 1)
          if (position > known) bytes += stored.bytes
          readTo = position + 1
        }
        readTo = appendedFrom
      }
      bytes += appendedBytes
      appendedBytes = 0
      return { upTo: journal.head(), bytes }
    },

    /** Subtracts messages that have left the window. The window now begins at position `beginsAt`. */
    left(entries: readonly Entry[], beginsAt: number): void {
      for (const entry of entries) change(entry, -1)
      from = beginsAt
    },

    of: (stream: string): InWindow => streams.get(stream) ?? nothing,
  }

  function change(entry: Entry, by: 1 | -1): void {
    const stream = entry.stream ?? entry.topic
    const counts = streams.get(stream) ?? { events: 0, others: 0, withErrors: 0 }
    if (isHistory(entry)) counts.events += by
    else counts.others += by
    if (entry.hasErrors) counts.withErrors += by
    if (counts.events > 0 || counts.others > 0) streams.set(stream, counts)
    else streams.delete(stream)
  }
}

const nothing: InWindow = { events: 0, others: 0, withErrors: 0 }
