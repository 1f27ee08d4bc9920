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
  /** It was acknowledged, no report came, and it was sent once more. */
  isSentAgain: boolean
}

/**
 * When a control state ended (`validUntil`), as its event writes it. Undefined: it has not ended, or the hub must judge.
 * `now`: milliseconds since the epoch, by the clock that wrote the event.
 */
export function endOf(payload: string, now: number): string | undefined {
  const event: unknown = JSON.parse(payload)
  const endField = kindOf(event)?.endField
  const end = isRecord(event) && endField !== undefined ? event[endField] : undefined
  return typeof end === 'string' && (parseInstant(end) ?? now + 1) <= now ? end : undefined
}

/** What a person knows an event by: its `playlistItemId`, else its time. */
export function nameOf(payload: string): string {
  const event: unknown = JSON.parse(payload)
  const { playlistItemId, ...fields } = isRecord(event) ? event : {}
  const timeField = kindOf(event)?.timeField ?? 'start'
  const [field, value] = playlistItemId ? ['playlistItemId', playlistItemId] : [timeField, fields[timeField]]
  return `${field} ${JSON.stringify(value)?.slice(0, 100)}`
}
