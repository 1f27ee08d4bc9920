/*
 * Each event carries a stamp: its time of publishing, in microseconds on a monotonic clock. All processes of a machine
 * share this clock. Subscribers measure delays by the stamp, and tell events apart.
 */
const digits = 16
const key = Buffer.from('"playlistItemId":"at')

/** Now, in microseconds. */
export function microseconds(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1e6 + Math.floor(nanoseconds / 1000)
}

/** A `playlistItemId` with zeros in the place where `writeStamp` puts the stamp. */
export const emptyStamp = `at${'0'.repeat(digits)}`

/** Offset of the stamp in a payload. */
export function stampPlace(payload: Buffer): number {
  return payload.indexOf(key) + key.length
}

export function writeStamp(payload: Buffer, place: number, stamp: number): void {
  payload.write(String(stamp).padStart(digits, '0'), place, 'latin1')
}

/** Returns a function that reads stamps. The function first tries the offset of the last stamp. */
export function createStampReader() {
  let place = 0
  /** Returns the stamp, or NaN for a payload without a stamp. */
  return (bytes: Buffer, start: number, end: number): number => {
    if (!isKeyAt(bytes, start + place, end)) {
      const found = bytes.subarray(start, end).indexOf(key)
      if (found < 0) return NaN
      place = found
    }
    let stamp = 0
    const first = start + place + key.length
    for (let index = first; index < first + digits; index++) stamp = stamp * 10 + (bytes[index] ?? 0) - 48
    return stamp
  }
}

function isKeyAt(bytes: Buffer, at: number, end: number): boolean {
  return at + key.length + digits <= end && bytes.compare(key, 0, key.length, at, at + key.length) === 0
}
