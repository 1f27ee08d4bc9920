let ahead = 0

/** The time at the hub, milliseconds since the epoch: a visitor's clock may be wrong. */
export function now(): number {
  return Date.now() + ahead
}

/** Sets the clock by an answer of the hub. Ignores small differences: `date` has whole seconds. */
export function setClock(response: Response): void {
  const date = Date.parse(response.headers.get('date') ?? '')
  const difference = date - Date.now()
  if (!Number.isNaN(difference)) ahead = Math.abs(difference) < 3_000 ? 0 : difference
}
