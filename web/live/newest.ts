/** An event time further in the future comes from a wrong clock. Milliseconds. */
const farFutureMs = 10 * 60 * 1000

/**
 * Whether an event replaces the shown event, by their times (docs/subscribers.md, "The newest event counts"). Times are
 * milliseconds; `shown` undefined: no event is shown.
 */
export function isNews(time: number, shown: number | undefined, now: number): boolean {
  return shown === undefined || shown <= time || shown > now + farFutureMs
}
