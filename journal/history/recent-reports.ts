import type { Journal } from '../journal.ts'

/** The positions of this many reports stay in memory. Even at the highest rate of events, they cover some seconds. */
const kept = 65_536

/**
 * The positions of the newest reports, for clients that poll for new events. Each event costs only one number in
 * memory.
 */
export function createRecentReports(journal: Pick<Journal, 'onEach' | 'head'>) {
  const positions = new Float64Array(kept)
  let count = 0
  /** All reports after this position are in memory. */
  let knownFrom = journal.head()
  journal.onEach(({ isReport, position }) => {
    if (!isReport) return
    if (count >= kept) knownFrom = at(count)
    positions[count++ % kept] = position
  })

  return {
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
    let low = Math.max(0, count - kept)
    let high = count
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      if (at(middle) > position) high = middle
      else low = middle + 1
    }
    return low
  }

  function at(nth: number): number {
    return positions[nth % kept] ?? 0
  }
}
