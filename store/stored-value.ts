import type { Bounds, Change, Store } from './store.ts'

/*
 * A stored value is the event time of the entry (8 bytes, NaN if it has none), followed by the value of the caller.
 */

export function encode(time: number, value: Buffer | string): Buffer {
  const stored = Buffer.allocUnsafe(8 + Buffer.byteLength(value))
  stored.writeDoubleBE(time, 0)
  if (typeof value === 'string') stored.write(value, 8)
  else value.copy(stored, 8)
  return stored
}

export function contentOf(stored: Buffer): Buffer {
  return stored.subarray(8)
}

/** Splits a stored value into the value of the caller and the event time. Undefined if there is no stored value. */
export function entryOf(stored: Buffer | undefined): { value: Buffer; time: number | undefined } | undefined {
  return stored && { value: contentOf(stored), time: timeOf(stored) }
}

export function timeOf(stored: Buffer | undefined): number | undefined {
  if (stored === undefined) return undefined
  const time = stored.readDoubleBE(0)
  return Number.isNaN(time) ? undefined : time
}

/** The embedded driver stores the last number under this key. The key has no `/`, so no range contains it. */
export const counterKey = 'number'

/**
 * The range of the keys that start with `prefix`, which ends in `/`. The range begins with `prefix + from`,
 * and ends before `prefix + before`. Without `before`, the range of `journal/` ends before `journal0`: `0` is
 * the next byte after `/`.
 */
export function keysBelow(prefix: string, { from = '', before }: Bounds = {}): { gte: string; lt: string } {
  return { gte: prefix + from, lt: before === undefined ? `${prefix.slice(0, -1)}0` : prefix + before }
}

/** The number of the format in which this release writes a store. The release before it stored no such number. */
export const presentFormat = 2

/** A store keeps the number of its format under this key. The key has no `/`, so no range contains it. */
export const formatKey = 'format'

/**
 * Whether this release has written the store. False if the store is empty, or if the release before this one has
 * written it. Rejects if a newer release has written it.
 */
export async function isPresentFormat(store: Pick<Store, 'get'>): Promise<boolean> {
  const stored = await store.get(formatKey)
  if (stored === undefined) return false
  const format = stored.toString()
  if (format === String(presentFormat)) return true
  throw new Error(
    `a newer release has written the store: it has format ${format}, this release reads ${presentFormat}. Install that release again, or restore a backup`,
  )
}

/** The change that marks a store as written by this release. */
export function formatChange(): Change {
  return { put: formatKey, value: String(presentFormat) }
}
