const first = 1_000
const short = 5_000
/** A restart of the hub is over by then. */
const shortFor = 120_000
const long = 60_000

/** Longest wait of a timer, milliseconds. It would not wait at all for more. */
export const longestTimerMs = 2 ** 31 - 1

/**
 * Pause of a publisher before the next attempt to connect, milliseconds. It doubles with each failure, up to five seconds in
 * the first two minutes of an outage, and from then on grows with it to a minute. It is shortened at random.
 */
export function pauseAfter(failures: number, outageMs: number): number {
  const pause = Math.min(first * 2 ** (failures - 1), Math.max(short, outageMs - shortFor), long)
  return pause * (0.5 + Math.random() / 2)
}
