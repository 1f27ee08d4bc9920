import { randomBytes } from 'node:crypto'

/**
 * A maker of event ids: numeric strings, strictly increasing within the process even when the clock
 * steps back, ordered by time, and unique across nodes that do not know of each other (design.md §5).
 *
 * An id is the milliseconds, then 32 random bits of this maker, then a 16-bit counter, in decimal.
 */
export function createEventIds(clock: () => number = Date.now): () => string {
  const node = BigInt(randomBytes(4).readUInt32BE())
  let last = 0
  let counter = 0
  return () => {
    const now = Math.floor(clock())
    if (now > last) {
      last = now
      counter = 0
    } else if (++counter > 0xffff) {
      // More than 65,536 ids in one millisecond: borrow from the next one.
      last++
      counter = 0
    }
    return ((BigInt(last) << 48n) | (node << 16n) | BigInt(counter)).toString()
  }
}

/** When an event got its id, milliseconds since the epoch; undefined: this hub did not make the id. */
export function timeOfEventId(id: string): number | undefined {
  return /^[1-9][0-9]{14,39}$/.test(id) ? Number(BigInt(id) >> 48n) : undefined
}
