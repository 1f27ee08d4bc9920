import { laneOf, livestreamsOf } from './lane-of.ts'
import type { DeadLetter, WorkItem } from './work-item.ts'

/** One queue in memory. */
export interface Queue {
  /** The items that the hub tries one after the other, in the order of acceptance. */
  inOrder: WorkItem[]
  /** The same by lane, as soon as somebody has asked for a lane: most queues have none (`byLaneOf`). */
  byLane?: Map<string, WorkItem[]>
  /** How many of them are not for exactly one livestream. */
  ofSeveral: number
  /** Items that the hub set aside after too many refusals, and tries out of order. */
  aside: WorkItem[]
  /** Dead letters, in the order in which the hub gave them up. */
  dead: DeadLetter[]
  dropped: number
  stale: number
  /** Highest sequences so far: `before` for items older than the queue, `since` for all others. */
  highest: { before: number; since: number }
}

/**
 * An item set aside waits for less than this, milliseconds (`backOff`: at most 600 s). If `asideUntil` is further ahead
 * of the clock, the clock was set back. Such an item is due at once.
 */
const maxAsideMs = 3_600_000

const few = 20

/** The items of a queue from which the hub chooses its next attempt. */
export interface Waiting {
  /** The first item of `inOrder`. */
  head: WorkItem | undefined
  /** The item that comes after `head`. */
  second: WorkItem | undefined
  /** Of the items set aside that can be tried now, the one with the earliest `asideUntil`. */
  due: WorkItem | undefined
  /** Of all items that were set aside, the one with the earliest `asideUntil`. */
  aside: WorkItem | undefined
}

/** An item or a dead letter. */
type Numbered = Pick<WorkItem, 'sequence'>

/** The numbers of a queue that operators see. */
export interface QueueLength {
  pending: number
  /** How many of the pending items the hub has set aside. */
  aside: number
  deadLetters: number
  /** When the oldest waiting item was put into the queue, ISO 8601. Null: no item waits. */
  oldest: string | null
  /** Items and dead letters that the limits made this node drop since its start. */
  dropped: number
  /** Items that this node has passed over since its start: they were not worth delivering any more. */
  stale: number
}

export function emptyQueue(): Queue {
  return {
    inOrder: [],
    ofSeveral: 0,
    aside: [],
    dead: [],
    dropped: 0,
    stale: 0,
    highest: { before: 0, since: 0 },
  }
}

export function isEmpty({ inOrder, aside, dead }: Queue): boolean {
  return inOrder.length + aside.length + dead.length === 0
}

/**
 * Whether the sequence of an item is a journal position, which is below 1e15. `createBeginning` gives such sequences to
 * items for earlier messages. Sequences of all other items come from the clock, and are above 1e15.
 */
export function isOlderThanQueue({ sequence }: Numbered): boolean {
  return sequence < 1e15
}

/**
 * Whether an event waits in a queue; undefined if not. `behind`: id of the event at the head, or null if this event
 * waits behind no other.
 */
export function holds({ inOrder, aside }: Queue, messageId: string): { behind: string | null } | undefined {
  const isIt = (item: WorkItem) => item.messageId === messageId
  if (aside.some(isIt)) return { behind: null }
  if (!inOrder.some(isIt)) return undefined
  const [head] = inOrder
  return { behind: head && !isIt(head) ? head.messageId : null }
}

/**
 * Adds an item to `aside` if the item has `asideUntil`, otherwise to `inOrder`. In `inOrder`, items older than the
 * queue come first, in the order of their sequences. Any other item goes to the end.
 */
export function addTo(queue: Queue, item: WorkItem): void {
  const { inOrder, byLane, aside, highest } = queue
  const age = isOlderThanQueue(item) ? 'before' : 'since'
  highest[age] = Math.max(highest[age], item.sequence)
  if (item.asideUntil !== undefined) {
    aside.push(item)
    return
  }
  place(inOrder, item)
  if (byLane) addToLane(byLane, item)
  if (isOfSeveral(item)) queue.ofSeveral++
}

/** The items of a queue that are not aside, by lane. */
export function byLaneOf(queue: Queue): ReadonlyMap<string, readonly WorkItem[]> {
  if (queue.byLane) return queue.byLane
  const byLane = new Map<string, WorkItem[]>()
  for (const item of queue.inOrder) addToLane(byLane, item)
  queue.byLane = byLane
  return byLane
}

function addToLane(byLane: Map<string, WorkItem[]>, item: WorkItem): void {
  const name = laneOf(item)
  const lane = byLane.get(name)
  if (lane) place(lane, item)
  else byLane.set(name, [item])
}

function place(items: WorkItem[], item: WorkItem): void {
  if (!isOlderThanQueue(item)) {
    items.push(item)
    return
  }
  const before = items.findLastIndex((other) => isOlderThanQueue(other) && other.sequence < item.sequence)
  items.splice(before + 1, 0, item)
}

/** Removes an item of `inOrder` from its lane, or puts `changed` in its place. */
function changeInLane(queue: Queue, item: WorkItem, ...changed: WorkItem[]): void {
  if (changed.length === 0 && isOfSeveral(item)) queue.ofSeveral--
  const name = laneOf(item)
  const lane = queue.byLane?.get(name)
  if (!lane) return
  const index = lane.findIndex((other) => isSame(other, item))
  if (index >= 0) lane.splice(index, 1, ...changed)
  if (lane.length === 0) queue.byLane?.delete(name)
}

function isOfSeveral(item: WorkItem): boolean {
  return livestreamsOf(item).length !== 1
}

/** Removes the items with these sequences, and returns them. */
export function takeFrom(queue: Queue, sequences: ReadonlySet<number>): WorkItem[] {
  // Most calls take a few items near the front: a search is then faster than a filter.
  if (sequences.size <= few) return [...sequences].flatMap((sequence) => takeOne(queue, sequence))
  const taken = itemsIn(queue, sequences)
  for (const item of queue.inOrder) if (sequences.has(item.sequence)) changeInLane(queue, item)
  queue.inOrder = queue.inOrder.filter(({ sequence }) => !sequences.has(sequence))
  queue.aside = queue.aside.filter(({ sequence }) => !sequences.has(sequence))
  return taken
}

function takeOne(queue: Queue, sequence: number): WorkItem[] {
  const { inOrder, aside } = queue
  const isIt = (item: WorkItem) => item.sequence === sequence
  const index = inOrder.findIndex(isIt)
  const place = index >= 0 ? -1 : aside.findIndex(isIt)
  const taken = index >= 0 ? inOrder.splice(index, 1) : place >= 0 ? aside.splice(place, 1) : []
  if (index >= 0) for (const item of taken) changeInLane(queue, item)
  return taken
}

/** The shared items of a queue with positions up to `place`. They stand in the order of positions. */
export function sharedUpTo({ inOrder }: Queue, place: number): WorkItem[] {
  const found: WorkItem[] = []
  for (const item of inOrder) {
    if (item.isShared && item.position > place) break
    if (item.isShared) found.push(item)
  }
  return found
}

/** The waiting items with these sequences, in their current state. */
export function itemsIn({ inOrder, aside }: Queue, sequences: ReadonlySet<number>): WorkItem[] {
  return [...inOrder, ...aside].filter(({ sequence }) => sequences.has(sequence))
}

/** The current state of an item. Undefined: the item does not wait any more. */
export function currentOf({ inOrder, aside, highest }: Queue, item: WorkItem): WorkItem | undefined {
  // A sequence above the highest is that of a new item. Most calls are about new items, and a search is slow.
  if (item.sequence > highest[isOlderThanQueue(item) ? 'before' : 'since']) return undefined
  const isIt = (other: WorkItem) => isSame(other, item)
  return inOrder.find(isIt) ?? aside.find(isIt)
}

/** Orders dead letters by the time of giving up, then by sequence: a restart must not change the order. */
export function byGivingUp(a: DeadLetter, b: DeadLetter): number {
  // ISO 8601 times sort correctly as texts. Parsing a long list would be slow.
  if (a.givenUpAt !== b.givenUpAt) return a.givenUpAt < b.givenUpAt ? -1 : 1
  return bySequence(a, b)
}

export function isSame(a: Numbered, b: Numbered): boolean {
  return a.sequence === b.sequence
}

export function sequencesOf(items: readonly Numbered[]): ReadonlySet<number> {
  return new Set(items.map(({ sequence }) => sequence))
}

/** Inserts a dead letter at its place, which is nearly always the end. */
export function addLetterTo({ dead }: Queue, letter: DeadLetter): void {
  dead.splice(dead.findLastIndex((other) => byGivingUp(other, letter) < 0) + 1, 0, letter)
}

export function takeLettersFrom(queue: Queue, sequences: ReadonlySet<number>): void {
  queue.dead = queue.dead.filter(({ sequence }) => !sequences.has(sequence))
}

/**
 * The oldest items, as many as the queue has above `limit`. Leaves out the head, because an attempt with the head may
 * be under way.
 */
export function beyondLimit({ inOrder, aside }: Queue, limit: number): WorkItem[] {
  const excess = Math.max(0, inOrder.length + aside.length - limit)
  const oldest = [...aside, ...inOrder.slice(1, 1 + excess)].sort(bySequence)
  return oldest.slice(0, excess)
}

export function bySequence(a: Numbered, b: Numbered): number {
  return a.sequence - b.sequence
}

export function waitingIn(queue: Pick<Queue, 'inOrder' | 'aside'>, now: number): Waiting {
  const { inOrder, aside } = queue
  const [head, second] = inOrder
  // The earliest `asideUntil` decides, because all nodes must choose the same item. A failed attempt gives its item a
  // later `asideUntil`, so other items go first.
  const due = firstOf(aside.filter((item) => isDue(item, now)))
  return { head, second, due, aside: firstOf(aside) }
}

/** Of items that were set aside, the one with the earliest `asideUntil`. */
function firstOf(aside: readonly WorkItem[]): WorkItem | undefined {
  return aside.reduce<WorkItem | undefined>(
    (first, item) => (first && byDueTime(first, item) < 0 ? first : item),
    undefined,
  )
}

function isDue({ asideUntil = 0 }: WorkItem, now: number): boolean {
  return asideUntil <= now || asideUntil > now + maxAsideMs
}

function byDueTime(a: WorkItem, b: WorkItem): number {
  return (a.asideUntil ?? 0) - (b.asideUntil ?? 0) || bySequence(a, b)
}

/** Replaces an item by its changed state. With `asideUntil`, moves the item to `aside`. */
export function replaceIn(queue: Queue, changed: WorkItem): void {
  const { inOrder, aside } = queue
  const { sequence } = changed
  const asidePlace = aside.findIndex((item) => item.sequence === sequence)
  if (asidePlace >= 0) aside[asidePlace] = changed
  const index = inOrder.findIndex((item) => item.sequence === sequence)
  const before = inOrder[index]
  if (!before) return
  if (changed.asideUntil === undefined) {
    inOrder[index] = changed
    changeInLane(queue, before, changed)
  } else {
    inOrder.splice(index, 1)
    changeInLane(queue, before)
    aside.push(changed)
  }
}

export function lengthOf({ inOrder, aside, dead, dropped, stale }: Queue): QueueLength {
  // `Math.min` would throw for a long list: too many arguments.
  const oldest = aside.reduce(
    (least, { enqueuedAt }) => Math.min(least, enqueuedAt),
    inOrder[0]?.enqueuedAt ?? Infinity,
  )
  return {
    pending: inOrder.length + aside.length,
    aside: aside.length,
    deadLetters: dead.length,
    oldest: oldest === Infinity ? null : new Date(oldest).toISOString(),
    dropped,
    stale,
  }
}
