let ahead = 0

/** The time at the hub, milliseconds since the epoch: a visitor's clock may be wrong. */
export function now(): number {
  return Date.now() + ahead
}

/** A smaller difference of the clocks does not count, milliseconds: `date` has whole seconds. */
const toleranceMs = 3_000

/** Sets the clock by an answer of the hub, unless it fits. `askedAt`: when the page asked, by `Date.now()`. */
export function setClock(response: Response, askedAt: number): void {
  const date = Date.parse(response.headers.get('date') ?? '')
  if (Number.isNaN(date) || fits(ahead)) return
  ahead = fits(0) ? 0 : date - Date.now()

  /** The hub wrote its date after the question and before the answer. */
  function fits(difference: number): boolean {
    return date > askedAt + difference - toleranceMs && date < Date.now() + difference + toleranceMs
  }
}
