let ahead = 0

/** What the time is at the hub, milliseconds since the epoch: a visitor's clock may be wrong. */
export function now(): number {
  return Date.now() + ahead
}

/** Sets the clock by an answer of the hub. Its header has seconds: less than that is no difference. */
export function setClock(response: Response): void {
  const date = Date.parse(response.headers.get('date') ?? '')
  const difference = date - Date.now()
  if (!Number.isNaN(difference)) ahead = Math.abs(difference) < 3_000 ? 0 : difference
}
