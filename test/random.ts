export type Random = ReturnType<typeof createRandom>

/** Random numbers that follow from a seed (mulberry32). */
export function createRandom(seed: string) {
  let state = hashOf(seed)

  /** At least `from`, below `to`. */
  function between(from: number, to: number): number {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return from + (((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * (to - from)
  }

  return {
    between,
    /** A whole number below `count`. */
    below: (count: number): number => Math.floor(between(0, count)),
    happens: (share: number): boolean => between(0, 1) < share,
    oneOf<T>(values: readonly [T, ...T[]]): T {
      return values[Math.floor(between(0, values.length))] ?? values[0]
    },
  }
}

function hashOf(text: string): number {
  let hash = 2166136261
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 16777619)
  return hash
}
