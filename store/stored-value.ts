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

/** Makes an encoder that reuses its bytes: the caller must copy each result before the next call. */
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

/** Key of the last number that was taken, in the embedded driver. The key is no path, and so in no range. */
export const counterKey = 'number'

/**
 * The range of the keys that start with `prefix`, from `prefix + from` to before `prefix + before`. A prefix ends in
 * `/`, and `0` is the next byte after `/`.
 */
export function keysBelow(prefix: string, { from = '', before }: Bounds = {}): { gte: string; lt: string } {
  return { gte: prefix + from, lt: before === undefined ? `${prefix.slice(0, -1)}0` : prefix + before }
}

/** Format in which this release writes a store. The release before stored no format. */
export const presentFormat = 2

/** Key of the format of a store. The key is no path, and so in no range. */
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

/** The change that marks a store as written by this release. */
export function formatChange(): Change {
  return { put: formatKey, value: String(presentFormat) }
}
