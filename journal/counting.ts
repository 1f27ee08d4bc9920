import type { Store } from '../store/store.ts'
import { type Entry, journalPrefix, padded, positionIn, readEntry } from './entry.ts'
import { type InWindow, isHistory } from './keeping.ts'

/**
 * Counts the messages that each stream has in the window (`keeping.ts`). Without these counts in memory, every check of
 * a stream would read the whole stream.
 */
export function createCounting(store: Store) {
  const streams = new Map<string, InWindow>()
  /** The messages from position `from` to just before position `to` are counted. */
  let from = 0
  let to = 0

  return {
    /** Sets where the window begins. If another node has moved the window, `advance` counts anew. */
    beginAt(position: number): void {
      if (position === from) return
      streams.clear()
      from = position
      to = position
    },

    /**
     * Counts at most `most` messages, up to position `upTo`. Returns the last counted position as `upTo`. The result
     * `bytes` is the size of the newly counted messages after position `known`.
     */
    async advance(upTo: number, known: number, most: number): Promise<{ upTo: number; bytes: number }> {
      let bytes = 0
      let count = 0
      for await (const [key, value] of store.range(journalPrefix, {
        from: padded(to),
        before: padded(upTo + 1),
      })) {
        const position = positionIn(key)
        if (count++ === most) return { upTo: to - 1, bytes }
        change(readEntry(position, value).entry, 1)
        if (position > known) bytes += value.length
        to = position + 1
      }
      to = Math.max(to, upTo + 1)
      return { upTo, bytes }
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
    const { events, others, withErrors } = streams.get(stream) ?? nothing
    const after = isHistory(entry)
      ? { events: events + by, others, withErrors }
      : { events, others: others + by, withErrors: withErrors + (entry.hasErrors ? by : 0) }
    if (after.events > 0 || after.others > 0) streams.set(stream, after)
    else streams.delete(stream)
  }
}

const nothing: InWindow = { events: 0, others: 0, withErrors: 0 }
