let ahead = 0

/** The time at the hub, milliseconds since the epoch: a visitor's clock may be wrong. */
export function now(): number {
  return Date.now() + ahead
}

/** A smaller difference of the clocks does not count, milliseconds: `date` has whole seconds. */
const toleranceMs = 3_000

/**
 * Sets the clock by an answer of the hub that took `tookMs` milliseconds. The hub wrote its `date` at some time during
 * these.
 */
export function setClock(response: Response, tookMs: number): void {
  const date = Date.parse(response.headers.get('date') ?? '')
  const difference = date - Date.now()
  if (Number.isNaN(difference)) return
  const isRight = difference < toleranceMs && difference > -toleranceMs - tookMs
  ahead = isRight ? 0 : difference
}
