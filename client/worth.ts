import { parseInstant } from './instant.ts'
import { isRecord, kindOf } from './kind.ts'

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
  /** The newest time of the events behind, by kind and livestream. */
  const behind = new Map<string, number>()
  return items.toReversed().filter((item) => {
    const event: unknown = JSON.parse(item.payload)
    const row = kindOf(event)
    if (!isRecord(event) || row === undefined) return false
    const { kind, timeField, endField } = row
    if (endField !== undefined) return !item.isAcknowledged && timeOf(event[endField]) <= now
    if (row.class !== 'track') return false
    const time = timeOf(event[timeField])
    const services = Array.isArray(event.services) ? event.services : []
    // What cannot be judged here is sent, and the hub decides.
    if (time === Number.POSITIVE_INFINITY || services.length === 0) return false
    const livestreams = services.map((service) => keyOf(kind, service))
    const isOutrun = livestreams.every((key) => time <= (behind.get(key) ?? Number.NEGATIVE_INFINITY))
    for (const key of livestreams) behind.set(key, Math.max(time, behind.get(key) ?? time))
    return isOutrun && !item.isAcknowledged
  })
}

/** Milliseconds since the epoch. Infinite where the hub must judge. */
function timeOf(text: unknown): number {
  return (typeof text === 'string' ? parseInstant(text) : undefined) ?? Number.POSITIVE_INFINITY
}

/** Services that name their livestream in different ways count as different: then the event is sent. */
function keyOf(kind: string, service: unknown): string {
  const { id, externalId, publisherId } = Object(service)
  return JSON.stringify([kind, id, externalId, publisherId])
}
