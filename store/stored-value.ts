import { storeKeys } from './keys.ts'
import type { Bounds, Change, Store } from './store.ts'

/*
 * A stored value: the event time of the entry (8 bytes, NaN if it has none), then the caller's value.
 */

/** Writes into `stored`, which must have the length of the stored value. */
export function encode(
  time: number,
  value: Buffer | string,
  stored = Buffer.allocUnsafe(storedLength(value)),
): Buffer {
  stored.writeDoubleBE(time, 0)
  if (typeof value === 'string') stored.write(value, 8)
  else value.copy(stored, 8)
  return stored
}

/** The bytes of a stored value. */
export function storedLength(value: Buffer | string): number {
  return 8 + Buffer.byteLength(value)
}

export function contentOf(stored: Buffer): Buffer {
  return stored.subarray(8)
}

/** Splits a stored value into the caller's value and the event time. Undefined if nothing is stored. */
export function entryOf(stored: Buffer | undefined): { value: Buffer; time: number | undefined } | undefined {
  return stored && { value: contentOf(stored), time: timeOf(stored) }
}

export function timeOf(stored: Buffer | undefined): number | undefined {
  if (stored === undefined) return undefined
  const time = stored.readDoubleBE(0)
  return Number.isNaN(time) ? undefined : time
}

/** Key of the last number in the embedded store. No range contains a key without `/`. */
export const counterKey = storeKeys.number.prefix

/**
 * The range of the keys below `prefix`, which ends in `/`. It begins at `prefix + from`, and ends before `prefix +
 * before`. Without `before`, it ends behind all keys below `prefix`: `0` is the next byte after `/`.
 */
export function keysBelow(prefix: string, { from = '', before }: Bounds = {}): { gte: string; lt: string } {
  return { gte: prefix + from, lt: before === undefined ? `${prefix.slice(0, -1)}0` : prefix + before }
}

/** The store format of this release. 3.0.0-beta.1 stored no format. */
export const presentFormat = 3
/** The formats that this release reads: `migrate/before-shared-items.ts`. */
export const readFormats: readonly number[] = [2, presentFormat]

/** Key of the store format. No range contains a key without `/`. */
export const formatKey = storeKeys.format.prefix

/**
 * The format of a store, one of `readFormats`. Undefined: it is new, or 3.0.0-beta.1 wrote it. Rejects if a newer release
 * wrote it.
 */
export async function formatOf(store: Pick<Store, 'get'>): Promise<number | undefined> {
  const stored = await store.get(formatKey)
  if (stored === undefined) return undefined
  const format = stored.toString()
  if (readFormats.map(String).includes(format)) return Number(format)
  throw new Error(
    `a newer release has written the store: it has format ${format}, this release reads ${presentFormat}. Install that release again, or restore a backup`,
  )
}

/** The change that marks a store as written by this release. */
export function formatChange(): Change {
  return { put: formatKey, value: String(presentFormat) }
}
