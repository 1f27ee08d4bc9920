import type { Bounds, Change, Store } from './store.ts'

/*
 * A stored value is its event time (8 bytes, NaN for none) and then the bytes of the caller.
 */

export function encode(time: number, value: Buffer | string): Buffer {
  const stored = Buffer.allocUnsafe(8 + Buffer.byteLength(value))
  stored.writeDoubleBE(time, 0)
  if (typeof value === 'string') stored.write(value, 8)
  else value.copy(stored, 8)
  return stored
}

/** Encodes one value after the other into the same bytes: for a caller that copies each of them at once. */
export function createEncoder(): typeof encode {
  const bytes = Buffer.allocUnsafeSlow(sharedBytes)
  return (time, value) => {
    const end = 8 + Buffer.byteLength(value)
    if (end > sharedBytes) return encode(time, value)
    bytes.writeDoubleBE(time, 0)
    if (typeof value === 'string') bytes.write(value, 8)
    else value.copy(bytes, 8)
    return bytes.subarray(0, end)
  }
}

const sharedBytes = 64 * 1024

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

/** Where the embedded driver keeps the last number that was taken. It is no path, and so in no range. */
export const counterKey = 'number'

/**
 * Keys that start with `prefix`, from `prefix + from` on, up to before `prefix + before`. A prefix ends in `/`, and `0` is
 * the next byte after `/`.
 */
export function keysBelow(prefix: string, { from = '', before }: Bounds = {}): { gte: string; lt: string } {
  return { gte: prefix + from, lt: before === undefined ? `${prefix.slice(0, -1)}0` : prefix + before }
}

/** How this release writes a store. The release before wrote no number. */
export const presentFormat = 2

/** It is no path either. */
export const formatKey = 'format'

/**
 * Whether this release has written a store. False if the store is empty, or the release before has written it. Rejects
 * if a newer one has.
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

/** From now on the store is as this release writes it. */
export function formatChange(): Change {
  return { put: formatKey, value: String(presentFormat) }
}
