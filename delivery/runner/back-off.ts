const firstMs = 1_000
const maxMs = 600_000

/**
 * Milliseconds until the next attempt after so many failures in a row: 1 s, doubling up to 600 s (design.md §10).
 * The upper half is random, so that deliveries that failed together are not tried again together.
 */
export function backOff(failures: number, random: () => number): number {
  const full = Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 20))
  return full / 2 + (random() * full) / 2
}
