import { parseInstant } from '../../event/format.ts'
import type { EventKind, HubEvent } from '../../event/kind.ts'

/** What the hub keeps of an event to tell when it is over, without its payload (deliveries.md, "Worth"). */
export interface Element {
  /** Name of its kind, like `de.org.hub.v1.radio.track.playing`. */
  event: string
  /** Event time, milliseconds since the epoch. */
  time: number
  /** The `playlistItemId` of a track. */
  item?: string
  /** The event holds until this time, milliseconds since the epoch. */
  until?: number
  /** The event holds for this long after its acceptance, milliseconds. */
  forMs?: number
  /**
   * The livestreams for which a target gets the event. Each has the distance of its message in the journal from the
   * position of the item.
   */
  livestreams: Readonly<Record<string, number>>
}

/** The element of an event. `livestreams`: see `Element`. */
export function elementOf(event: HubEvent, kind: EventKind, livestreams: Element['livestreams']): Element {
  const fields: Readonly<Record<string, unknown>> = event
  const { timeField, endField, cycleField } = kind
  const { playlistItemId } = fields
  return {
    event: kind.name,
    time: instantIn(fields[timeField]) ?? 0,
    ...(typeof playlistItemId === 'string' && playlistItemId !== '' && { item: playlistItemId }),
    ...(endField !== undefined && { until: instantIn(fields[endField]) ?? 0 }),
    ...(cycleField !== undefined && { forMs: Number(fields[cycleField]) * 1000 }),
    livestreams,
  }
}

/** The distances of the messages of these livestreams, of which the item names the first. */
export function distances(livestreamIds: readonly string[]): Element['livestreams'] {
  return Object.fromEntries(livestreamIds.map((id, index) => [id, index]))
}

function instantIn(value: unknown): number | undefined {
  return typeof value === 'string' ? parseInstant(value) : undefined
}
