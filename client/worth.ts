/** How long an event is worth sending, milliseconds. The hub knows a repeated event again for an hour. */
export const longestWaitMs = 55 * 60_000

/** An event that waits for the hub. */
export interface Sendable {
  /** The event as JSON. */
  payload: string
  /** Whether the hub has acknowledged it: then only its report is missing. */
  isAcknowledged: boolean
}

/**
 * Of the events that wait, in the order in which they were published, those that are not worth sending: track events with
 * a newer one behind them for all their livestreams, and control states whose `validUntil` has passed (open.md §1).
 * `now`: milliseconds since the epoch, by the clock that wrote the events.
 */
export function notWorthSending<Item extends Sendable>(items: readonly Item[], now: number): Item[] {
  /** The newest time of the events behind, by name and livestream. */
  const behind = new Map<string, number>()
  return items.toReversed().filter((item) => {
    const { event, services, start, validUntil } = read(item.payload)
    if (event === 'de.org.hub.v1.radio.control')
      return !item.isAcknowledged && Date.parse(`${validUntil}`) <= now
    const time = Date.parse(`${start}`)
    const isTrack = typeof event === 'string' && event.startsWith('de.org.hub.v1.radio.track.')
    if (!isTrack || Number.isNaN(time) || !Array.isArray(services) || services.length === 0) return false
    const livestreams = services.map((service) => keyOf(event, service))
    const isOutrun = livestreams.every((key) => time <= (behind.get(key) ?? Number.NEGATIVE_INFINITY))
    for (const key of livestreams) behind.set(key, Math.max(time, behind.get(key) ?? time))
    return isOutrun && !item.isAcknowledged
  })
}

function read(payload: string): Record<string, unknown> {
  const value: unknown = JSON.parse(payload)
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

/** Services that name their livestream in different ways count as different: then the event is sent. */
function keyOf(event: string, service: unknown): string {
  const { id, externalId, publisherId } = Object(service)
  return JSON.stringify([event, id, externalId, publisherId])
}
