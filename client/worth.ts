import { ClientError } from './errors.ts'
import { parseInstant } from './instant.ts'
import { isRecord, kindOf } from './kind.ts'
import { createNewestFirst, type Sendable } from './newest-first.ts'
import type { EventRefused } from './refusal.ts'

/** How long an event is worth sending, milliseconds. The hub knows a repeated event again for an hour. */
export const longestWaitMs = 55 * 60_000

export type Worth<Item extends Sendable> = ReturnType<typeof createWorth<Item>>

/**
 * What in an outbox is worth sending, and what is sent first. Of an event that is given up it says why. `onProblem` is told of
 * refused events that nobody asks for.
 */
export function createWorth<Item extends Sendable>(onProblem: (problem: ClientError) => void) {
  const { published, ...newestFirst } = createNewestFirst<Item>()
  let unheard = new WeakSet<Item>()
  return {
    ...newestFirst,
    /** Nobody asks for the outcome of an event. */
    leftAlone(item: Item): void {
      unheard.add(item)
    },
    /** From now on somebody asks for all. */
    heard(): void {
      unheard = new WeakSet()
    },
    /** The hub has refused an event. Tells it if nobody asks. */
    refused(item: Item, cause: EventRefused): void {
      if (!unheard.has(item)) return
      onProblem(new ClientError('event.refused', `${nameOf(item.payload)}: ${cause.message}`, { cause }))
    },
    /** The control states whose end has passed. `now`: milliseconds since the epoch, by the clock that wrote the events. */
    ended(items: readonly Item[], now: number): [Item, string][] {
      return items.flatMap((item): [Item, string][] => {
        const end = item.isAcknowledged ? undefined : endOf(item.payload, now)
        return end === undefined ? [] : [[item, `expired: validUntil ${end} has passed`]]
      })
    },
    /** The hub has published an event. Returns what is superseded by that. */
    superseded(by: Item): [Item, string][] {
      const older = published(by)
      if (older.length === 0) return []
      const why = `newer: an event with ${nameOf(by.payload)} is published for all its livestreams`
      return older.map((item) => [item, why])
    },
  }
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
