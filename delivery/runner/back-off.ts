const firstMs = 1_000
/** Longest pause without the random part, milliseconds; with that part 600 s. */
const lastMs = 480_000
/** Each pause is extended at random, by up to this part of its length. */
const jitter = 0.25

/**
 * Milliseconds to wait after `failures` failures in a row: 1 s, doubling up to 600 s (design.md §10). A random part
 * spreads deliveries that failed together.
 */
export function backOff(failures: number, random: () => number): number {
  const shortest = Math.min(lastMs, firstMs * 2 ** Math.min(failures - 1, 20))
  return shortest * (1 + jitter * random())
}
