import { randomBytes } from 'node:crypto'

/**
 * Returns a function that makes event ids. An id is a numeric string. Ids are ordered by time. They strictly increase
 * within the process even when the clock steps back, and are unique across nodes that do not know each other
 * (design.md §5).
 *
 * The bits of an id: milliseconds since the epoch, 32 random bits that stand for the node, and a 16-bit counter. The id
 * is written in decimal.
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
      // More than 65,536 ids in one millisecond: use the next millisecond.
      last++
      counter = 0
    }
    return ((BigInt(last) << 48n) | (node << 16n) | BigInt(counter)).toString()
  }
}

/** When an event got its id, milliseconds since the epoch. Undefined: the id does not have the form of a hub's id. */
export function timeOfEventId(id: string): number | undefined {
  return /^[1-9][0-9]{14,39}$/.test(id) ? Number(BigInt(id) >> 48n) : undefined
}
