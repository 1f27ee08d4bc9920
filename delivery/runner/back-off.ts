const firstMs = 1_000
const maxMs = 600_000

/**
 * Milliseconds until the next attempt after `failures` failures in a row: 1 s, doubling up to 600 s (design.md §10). A
 * random part shortens the pause by up to half, so that deliveries that failed together are not repeated together.
 */
export function backOff(failures: number, random: () => number): number {
  const full = Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 20))
  return full / 2 + (random() * full) / 2
}
