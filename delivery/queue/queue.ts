import type { DeadLetter, WorkItem } from './work-item.ts'

/** One queue in memory. */
export interface Queue {
  /** The items that are tried one after the other, in the order of acceptance. */
  inOrder: WorkItem[]
  /** The items that were set aside, because the endpoint refused them too often. */
  aside: WorkItem[]
  /** In the order in which they were given up. */
  dead: DeadLetter[]
  dropped: number
  /** The highest sequences that the queue ever held: `before` of items older than the queue, `since` of the others. */
  highest: { before: number; since: number }
}

/** No item is set aside for longer, milliseconds. A time further ahead comes from a clock that was set back. */
const maxAsideMs = 3_600_000

/** Up to this number, `takeFrom` looks for the items one by one. */
const few = 20

/** The items of a queue that can be next. */
export interface Waiting {
  /** The first item in order. */
  head?: WorkItem
  /** The item that comes after `head`. */
  second?: WorkItem
  /** An item that was set aside, and whose time has come. */
  due?: WorkItem
  /** The item whose time comes first, of all that were set aside. */
  aside?: WorkItem
}

/** An item or a dead letter. */
type Numbered = Pick<WorkItem, 'sequence'>

/** A queue as operators see it. */
export interface QueueLength {
  pending: number
  /** How many of the pending items were set aside. */
  aside: number
  deadLetters: number
  /** Since when the oldest item waits, ISO 8601. */
  oldest: string | null
  /** Items and dead letters lost to the limits of the queue since the start. */
  dropped: number
}

export function emptyQueue(): Queue {
  return { inOrder: [], aside: [], dead: [], dropped: 0, highest: { before: 0, since: 0 } }
}

export function isEmpty({ inOrder, aside, dead }: Queue): boolean {
  return inOrder.length + aside.length + dead.length === 0
}

/** Whether an item is older than its queue: its sequence is then a journal position. A clock makes greater ones. */
export function isFromBefore({ sequence }: Numbered): boolean {
  return sequence < 1e15
}

/**
 * Whether an event still waits in a queue; undefined: it does not. `behind` is the event at the head of the queue.
 * It is null if this event is at the head itself, or was set aside.
 */
export function holds({ inOrder, aside }: Queue, messageId: string): { behind: string | null } | undefined {
  const isIt = (item: WorkItem) => item.messageId === messageId
  if (aside.some(isIt)) return { behind: null }
  if (!inOrder.some(isIt)) return undefined
  const [head] = inOrder
  return { behind: head && !isIt(head) ? head.messageId : null }
}

/** Adds an item at the end of a queue. An item older than the queue is added ahead of all newer items. */
export function addTo({ inOrder, aside, highest }: Queue, item: WorkItem): void {
  const age = isFromBefore(item) ? 'before' : 'since'
  highest[age] = Math.max(highest[age], item.sequence)
  if (item.asideUntil !== undefined) aside.push(item)
  else if (!isFromBefore(item)) inOrder.push(item)
  else {
    const before = inOrder.findLastIndex((other) => isFromBefore(other) && other.sequence < item.sequence)
    inOrder.splice(before + 1, 0, item)
  }
}

/** Removes the items with these sequences, and returns them. */
export function takeFrom(queue: Queue, sequences: ReadonlySet<number>): WorkItem[] {
  // Nearly always there are few, near the front of a queue that may be long.
  if (sequences.size <= few) return [...sequences].flatMap((sequence) => takeOne(queue, sequence))
  const taken = itemsIn(queue, sequences)
  queue.inOrder = queue.inOrder.filter(({ sequence }) => !sequences.has(sequence))
  queue.aside = queue.aside.filter(({ sequence }) => !sequences.has(sequence))
  return taken
}

function takeOne({ inOrder, aside }: Queue, sequence: number): WorkItem[] {
  for (const list of [inOrder, aside]) {
    const index = list.findIndex((item) => item.sequence === sequence)
    if (index >= 0) return list.splice(index, 1)
  }
  return []
}

/** The items with these sequences that still wait, as they are now. */
export function itemsIn({ inOrder, aside }: Queue, sequences: ReadonlySet<number>): WorkItem[] {
  return [...inOrder, ...aside].filter(({ sequence }) => sequences.has(sequence))
}

/** An item as it is now; undefined when it does not wait any more. */
export function currentOf({ inOrder, aside, highest }: Queue, item: WorkItem): WorkItem | undefined {
  // Do not search for a new item: most callers ask for one, and the queue may be long.
  if (item.sequence > highest[isFromBefore(item) ? 'before' : 'since']) return undefined
  const isIt = (other: WorkItem) => isSame(other, item)
  return inOrder.find(isIt) ?? aside.find(isIt)
}

/** Orders dead letters alike in memory and after a restart, also letters given up in the same millisecond. */
export function byGivingUp(a: DeadLetter, b: DeadLetter): number {
  // Times in ISO 8601 sort as texts, which is faster: the lists are long.
  if (a.givenUpAt !== b.givenUpAt) return a.givenUpAt < b.givenUpAt ? -1 : 1
  return bySequence(a, b)
}

export function isSame(a: Numbered, b: Numbered): boolean {
  return a.sequence === b.sequence
}

export function sequencesOf(items: readonly Numbered[]): ReadonlySet<number> {
  return new Set(items.map(({ sequence }) => sequence))
}

/** Inserts a dead letter in order, which is nearly always at the end. */
export function addLetterTo({ dead }: Queue, letter: DeadLetter): void {
  dead.splice(dead.findLastIndex((other) => byGivingUp(other, letter) < 0) + 1, 0, letter)
}

export function takeLettersFrom(queue: Queue, sequences: ReadonlySet<number>): void {
  queue.dead = queue.dead.filter(({ sequence }) => !sequences.has(sequence))
}

/** The oldest items beyond a limit, without the head of the queue: an attempt with the head may be under way. */
export function beyondLimit({ inOrder, aside }: Queue, limit: number): WorkItem[] {
  const excess = Math.max(0, inOrder.length + aside.length - limit)
  const oldest = [...aside, ...inOrder.slice(1, 1 + excess)].sort(bySequence)
  return oldest.slice(0, excess)
}

export function bySequence(a: Numbered, b: Numbered): number {
  return a.sequence - b.sequence
}

export function waitingIn({ inOrder, aside }: Queue, now: number): Waiting {
  const [head, second] = inOrder
  // Take the item whose time comes first. So all nodes take the same one, and an item tried in vain comes last.
  const due = firstOf(aside.filter((item) => isDue(item, now)))
  const first = firstOf(aside)
  return {
    ...(head && { head }),
    ...(second && { second }),
    ...(due && { due }),
    ...(first && { aside: first }),
  }
}

/** The item whose time comes first, of items that were set aside. */
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

/** Replaces an item by its changed state. Moves it from `inOrder` to `aside` if the change has set it aside. */
export function replaceIn({ inOrder, aside }: Queue, changed: WorkItem): void {
  const { sequence } = changed
  const asidePlace = aside.findIndex((item) => item.sequence === sequence)
  if (asidePlace >= 0) aside[asidePlace] = changed
  const index = inOrder.findIndex((item) => item.sequence === sequence)
  if (index < 0) return
  if (changed.asideUntil === undefined) inOrder[index] = changed
  else {
    inOrder.splice(index, 1)
    aside.push(changed)
  }
}

export function lengthOf({ inOrder, aside, dead, dropped }: Queue): QueueLength {
  const oldest = smallest([...inOrder.slice(0, 1), ...aside].map(({ enqueuedAt }) => enqueuedAt))
  return {
    pending: inOrder.length + aside.length,
    aside: aside.length,
    deadLetters: dead.length,
    oldest: oldest === undefined ? null : new Date(oldest).toISOString(),
    dropped,
  }
}

/** The smallest number. `Math.min` cannot take a long list. */
export function smallest(numbers: readonly number[]): number | undefined {
  return numbers.reduce<number | undefined>(
    (least, one) => (least === undefined || one < least ? one : least),
    undefined,
  )
}
