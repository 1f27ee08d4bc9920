/*
 * A stored value is its event time (8 bytes, NaN for none) and then the bytes of the caller.
 */

export function encode(time: number, value: Buffer | string): Buffer {
  const bytes = typeof value === 'string' ? Buffer.from(value) : value
  const stored = Buffer.allocUnsafe(8 + bytes.length)
  stored.writeDoubleBE(time, 0)
  bytes.copy(stored, 8)
  return stored
}

export function contentOf(stored: Buffer): Buffer {
  return stored.subarray(8)
}

/** Event time and bytes of a stored value; undefined where there is none. */
export function entryOf(stored: Buffer | undefined): { value: Buffer; time: number | undefined } | undefined {
  return stored && { value: contentOf(stored), time: timeOf(stored) }
}

export function timeOf(stored: Buffer | undefined): number | undefined {
  if (stored === undefined) return undefined
  const time = stored.readDoubleBE(0)
  return Number.isNaN(time) ? undefined : time
}

/** Every key that starts with `prefix`: it ends in `/`, and `0` is the next byte after `/`. */
export function keysBelow(prefix: string): { gte: string; lt: string } {
  return { gte: prefix, lt: `${prefix.slice(0, -1)}0` }
}
