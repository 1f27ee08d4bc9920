import { parseInstant } from './instant.ts'
import { isRecord, kindOf } from './kind.ts'

/** An event that waits for the hub. */
export interface Sendable {
  /** The event as JSON. */
  payload: string
  /** Whether the hub has acknowledged it: then only its report is missing. */
  isAcknowledged: boolean
  /** It was acknowledged, no report came, and it was sent once more. */
  isSentAgain: boolean
}

/** What decides whether a newer track event takes the place of this one. */
interface Track {
  /** When it starts, milliseconds since the epoch. */
  time: number
  /** Its livestreams, each with the kind, for which no newer event is published yet. */
  slots: Set<string>
}

/**
 * After an outage the newest track events are sent first (open.md §1). An older one is held until a newer one is published
 * for each of its livestreams: then it is superseded. If the hub refuses the newer one, the older one is due after all.
 */
export function createNewestFirst<Item extends Sendable>() {
  /** What waits, by slot, in the order in which it was published. All of this is empty while nothing is held. */
  const lines = new Map<string, Item[]>()
  const tracks = new Map<Item, Track>()
  const held = new Set<Item>()
  const timeOf = (item: Item | undefined) => (item && tracks.get(item)?.time) ?? Number.NEGATIVE_INFINITY

  function enter(item: Item): void {
    const track = tracks.get(item) ?? trackOf(item.payload)
    if (!track) return
    tracks.set(item, track)
    for (const slot of track.slots) {
      const line = lines.get(slot)
      if (line) line.push(item)
      else lines.set(slot, [item])
    }
  }

  /** Takes back those that nothing newer stands behind. Of two with the same time the later one counts. */
  function freeNewest(line: readonly Item[]): void {
    let newest = Number.NEGATIVE_INFINITY
    for (const item of line.toReversed()) {
      if (timeOf(item) > newest) held.delete(item)
      newest = Math.max(newest, timeOf(item))
    }
  }

  /** Removes an event, and returns what it alone stood behind. */
  function leave(line: Item[], item: Item): Item[] {
    const due: Item[] = []
    const place = line.lastIndexOf(item)
    let newest = Number.NEGATIVE_INFINITY
    for (let index = place + 1; index < line.length; index++) newest = Math.max(newest, timeOf(line[index]))
    line.splice(place, 1)
    // The loop ends at the first event that is newer than this one: this one did not hold it.
    for (let index = place - 1; index >= 0 && newest < timeOf(item); index--) {
      const older = line[index]
      if (older && timeOf(older) > newest && held.delete(older)) due.push(older)
      newest = Math.max(newest, timeOf(older))
    }
    return due
  }

  function endIfIdle(): void {
    if (held.size > 0) return
    lines.clear()
    tracks.clear()
  }

  return {
    isHeld: (item: Item): boolean => held.has(item),
    /** Holds the older events, and returns them. `items`: all events that wait, in the order in which they were published. */
    hold(items: readonly Item[]): readonly Item[] {
      lines.clear()
      held.clear()
      for (const item of items) {
        enter(item)
        const isAcknowledged = item.isAcknowledged || item.isSentAgain
        if (!isAcknowledged && (tracks.get(item)?.slots.size ?? 0) > 0) held.add(item)
      }
      for (const line of lines.values()) freeNewest(line)
      endIfIdle()
      return [...held]
    },
    /** An event was published behind all others: what is held may be older. */
    add(item: Item): void {
      if (held.size > 0) enter(item)
    },
    /** The hub has published an event. Returns what is superseded by that. */
    published(item: Item): Item[] {
      const superseded: Item[] = []
      for (const slot of tracks.get(item)?.slots ?? []) {
        const line = lines.get(slot) ?? []
        const place = line.lastIndexOf(item)
        const rest = line.filter((older, index) => {
          const its = tracks.get(older)
          if (index >= place || !its || its.time > timeOf(item)) return true
          its.slots.delete(slot)
          if (its.slots.size === 0 && held.has(older)) superseded.push(older)
          return false
        })
        lines.set(slot, rest)
      }
      return superseded
    },
    /** An event waits no longer, whatever became of it. Returns what is due for that reason. */
    left(item: Item): Item[] {
      if (held.size === 0) return []
      const slots = [...(tracks.get(item)?.slots ?? [])]
      const due = slots.flatMap((slot) => leave(lines.get(slot) ?? [], item))
      tracks.delete(item)
      held.delete(item)
      endIfIdle()
      return due
    },
  }
}

/** Undefined: the event is no track, or cannot be judged here. Then it is sent, and the hub decides. */
function trackOf(payload: string): Track | undefined {
  const event: unknown = JSON.parse(payload)
  const row = kindOf(event)
  if (!isRecord(event) || row?.class !== 'track') return undefined
  const start = event[row.timeField]
  const time = typeof start === 'string' ? parseInstant(start) : undefined
  const services = Array.isArray(event.services) ? event.services : []
  if (time === undefined || services.length === 0) return undefined
  return { time, slots: new Set(services.map((service) => slotOf(row.kind, service))) }
}

/** Services that name their livestream in different ways count as different: then the event is sent. */
function slotOf(kind: string, service: unknown): string {
  const { id, externalId, publisherId } = Object(service)
  return JSON.stringify([kind, id, externalId, publisherId])
}
