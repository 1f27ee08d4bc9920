import { percentile } from '../../telemetry/latency.ts'

/** Half of the delays, 99 % of them and the longest, in their unit: Infinity for what never came, NaN if there are none. */
export interface Delays {
  p50: number
  p99: number
  max: number
}

export function delaysOf(delays: Iterable<number>): Delays {
  const sorted = Float64Array.from(delays).sort()
  // No delays would else be the best ones, 0.
  if (sorted.length === 0) return { p50: NaN, p99: NaN, max: NaN }
  return { p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99), max: percentile(sorted, 1) }
}
