const firstMs = 2_000
const maxMs = 600_000

/**
 * Milliseconds until the next attempt after `failures` failures in a row: at first 1 to 2 s, then twice as long each
 * time, up to 600 s (design.md §10). The upper half of each pause is random, so that deliveries that failed together
 * are not repeated together.
 */
export function backOff(failures: number, random: () => number): number {
  const longest = Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 20))
  return longest / 2 + (random() * longest) / 2
}
