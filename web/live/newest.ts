/** Milliseconds. An event time that is further in the future than this comes from a wrong clock. */
const farFutureMs = 10 * 60 * 1000

/**
 * Whether an event replaces the event that is shown, by their times (docs/subscribers.md, "The newest event counts"):
 * the later time wins, and of two equal times the later arrival. Any event replaces one that is far in the future.
 */
export function isNews(time: number, shown: number | undefined, now: number): boolean {
  return shown === undefined || shown <= time || shown > now + farFutureMs
}
