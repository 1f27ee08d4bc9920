const firstMs = 1_000
/** Longest pause without its random part, milliseconds. With its random part, the longest pause is 600 s. */
const lastMs = 480_000
/** Each pause is extended at random, by up to this part of its length. */
const jitter = 0.25

/**
 * Milliseconds until the next attempt after `failures` failures in a row: 1 s, doubling up to 600 s (design.md §10). A
 * random part makes each pause longer, so that deliveries that failed together are not repeated together.
 */
export function backOff(failures: number, random: () => number): number {
  const shortest = Math.min(lastMs, firstMs * 2 ** Math.min(failures - 1, 20))
  return shortest * (1 + jitter * random())
}
