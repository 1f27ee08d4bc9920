/** An event time further ahead than this comes from a wrong clock, milliseconds. */
const farFutureMs = 10 * 60 * 1000

/**
 * Whether an event takes the place of the one that is shown, by their times (docs/subscribers.md, "The newest event
 * counts"): the later time wins, of two equal ones the later arrival. A time far ahead gives way to any arrival.
 */
export function isNews(time: number, shown: number | undefined, now: number): boolean {
  return shown === undefined || shown <= time || shown > now + farFutureMs
}
