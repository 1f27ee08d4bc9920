import type { MaxAge } from '../../event/delivery-fields.ts'
import { bareName, type EventKind, eventKinds, kindByName } from '../../event/kind.ts'
import { radioTopic } from '../../event/topic.ts'
import type { WorkItem } from '../queue/work-item.ts'

/** When a target gets an event (deliveries.md). */
export interface Worth {
  /** Absent: an event is always worth delivering. */
  maxAge?: MaxAge
  /** The target gets an event this long after its acceptance, milliseconds. */
  delayMs?: number
}

/**
 * A moment by three clocks. An instant of an event is compared with the system clock, which may have been corrected. An
 * age makes no jump with it: what this node has seen grows old.
 */
export interface ClockReading {
  /** Milliseconds since the epoch. */
  now: number
  /** The same by a clock that does not jump ahead. */
  steady: number
  /** Milliseconds of `performance.now()`. */
  elapsed: number
}

/** An event of a livestream, as this node knows it. */
export interface KnownEvent {
  id: string
  position: number
  /** Event time, milliseconds since the epoch. */
  time: number
  /** The `playlistItemId` of a track. */
  item?: string | undefined
  /** When the hub accepted the event, milliseconds since the epoch. */
  at: number
  /** When this node first saw the event, milliseconds of `performance.now()`. */
  seen: number
}

/** What this node knows of the livestreams, by topic of the radio tree. */
export interface KnownEvents {
  /** The newest events: all that can be the newest one at some moment, for some delay. */
  newest(topic: string): readonly KnownEvent[]
  /** The event that is retained. */
  retained(topic: string): Pick<KnownEvent, 'id' | 'position' | 'time'> | undefined
}

type JudgedItem = Pick<WorkItem, 'messageId' | 'position' | 'enqueuedAt' | 'acceptedAt' | 'element' | 'seen'>

/**
 * Whether an item is not worth delivering any more (deliveries.md, "Worth"). What a person asked for always is: a
 * replay, a dead letter, a beginning with earlier events. These items have `acceptedAt`.
 */
export function isStale(item: JudgedItem, worth: Worth, moment: ClockReading, known: KnownEvents): boolean {
  const { maxAge, delayMs = 0 } = worth
  if (maxAge === undefined || item.acceptedAt !== undefined) return false
  const age = ageOf({ at: item.enqueuedAt, seen: item.seen }, moment)
  if (maxAge !== 'element') return age > maxAge * 1000 + delayMs
  const { element } = item
  if (!element) return false
  const { until, forMs } = element
  if (until !== undefined) return moment.now >= until + delayMs
  if (forMs !== undefined) return age >= forMs + delayMs
  const kind = kindByName.get(element.event)
  if (!kind) return false
  return Object.entries(element.livestreams).every(([livestreamId, distance]) => {
    const one = { ...element, id: item.messageId, position: item.position + distance }
    return isOver(one, { kind, livestreamId, delayMs }, moment, known)
  })
}

/** Whether an element of one livestream is over. */
function isOver(
  element: Pick<KnownEvent, 'id' | 'position' | 'time' | 'item'>,
  { kind, livestreamId, delayMs }: { kind: EventKind; livestreamId: string; delayMs: number },
  moment: ClockReading,
  known: KnownEvents,
): boolean {
  const topic = radioTopic(livestreamId, kind)
  // Whatever its `length` says: a live show of an hour comes with a length of 240.
  if (kind.isNow && isSame(known.retained(topic), element)) return false
  const newest = newestOf(known.newest(topic), delayMs, moment)
  if (newest && isLater(newest, element) && !isSame(newest, element)) return true
  const playingKind = eventKinds.find(({ isNow, class: name }) => isNow && name === kind.class)
  if (bareName(kind) !== 'next' || !playingKind) return false
  const playing = newestOf(known.newest(radioTopic(livestreamId, playingKind)), delayMs, moment)
  if (!playing) return false
  return playing.time >= element.time || (element.item !== undefined && element.item === playing.item)
}

/** The newest event that has begun, of those accepted at least `delayMs` ago. */
function newestOf(
  events: readonly KnownEvent[],
  delayMs: number,
  moment: ClockReading,
): KnownEvent | undefined {
  let newest: KnownEvent | undefined
  for (const event of events) {
    const age = ageOf(event, moment)
    const hasBegun = event.time <= moment.now || age >= event.time - event.at
    if (hasBegun && age >= delayMs && !(newest && isLater(newest, event))) newest = event
  }
  return newest
}

/** Whether `one` counts before `other`: by its start, and of two with the same start the one accepted later. */
export function isLater(
  one: Pick<KnownEvent, 'time' | 'position'>,
  other: Pick<KnownEvent, 'time' | 'position'>,
): boolean {
  return one.time > other.time || (one.time === other.time && one.position > other.position)
}

/** A repetition of an event has its id, and a position of its own. */
function isSame(
  one: Pick<KnownEvent, 'id' | 'position' | 'time'> | undefined,
  other: Pick<KnownEvent, 'id' | 'position' | 'time'>,
): boolean {
  // An event keeps its time, and reading an id costs more.
  if (one === undefined || one.time !== other.time) return false
  return one.position === other.position || one.id === other.id
}

/**
 * How long an item has still to wait for its time, milliseconds. It never waits for longer than the delay after this
 * node first saw it, whatever clocks say (deliveries.md, "When"). What a person asked for does not wait.
 */
export function waitOf(
  item: Pick<JudgedItem, 'enqueuedAt' | 'acceptedAt' | 'seen'>,
  { delayMs = 0 }: Worth,
  moment: ClockReading,
): number {
  if (delayMs === 0 || item.acceptedAt !== undefined) return 0
  return Math.max(0, delayMs - ageOf({ at: item.enqueuedAt, seen: item.seen }, moment))
}

/** How long ago something was accepted, milliseconds: at least for as long as this node has known it. */
export function ageOf(
  { at, seen }: { at: number; seen: number },
  { steady, elapsed }: Pick<ClockReading, 'steady' | 'elapsed'>,
): number {
  return Math.max(steady - at, elapsed - seen)
}
