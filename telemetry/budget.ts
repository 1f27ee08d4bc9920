/**
 * Longest time for one event in milliseconds, from the receipt of its PUBLISH until it is written to the last
 * subscriber (service.md §8).
 */
export const budgetMs = 220

/** Number of samples that the rolling percentiles are computed from. */
const windowSize = 4096

/**
 * Rolling percentiles of the time that events take through the hub.
 * Keeps the newest samples in a ring, so that memory and cost do not grow with traffic.
 */
export function createBudget() {
  const ring = new Float64Array(windowSize)
  let count = 0

  return {
    /** Adds the milliseconds that one event took. */
    add(ms: number): void {
      ring[count % windowSize] = ms
      count++
    },
    /**
     * `count` is the number of all events since the start. `p50` and `p99` are percentiles of the `newest` samples, in
     * milliseconds.
     */
    summary(newest = windowSize): { count: number; p50: number; p99: number } {
      const length = Math.min(count, windowSize, newest)
      const first = (count - length) % windowSize
      const upToEnd = ring.subarray(first, first + length)
      const sorted = new Float64Array(length)
      sorted.set(upToEnd)
      sorted.set(ring.subarray(0, length - upToEnd.length), upToEnd.length)
      sorted.sort()
      return { count, p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99) }
    },
  }
}

/** The nearest-rank percentile of milliseconds in ascending order, rounded to microseconds. 0 if `sorted` is empty. */
export function percentile(sorted: ArrayLike<number>, share: number): number {
  const value = sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0
  return Math.round(value * 1000) / 1000
}
