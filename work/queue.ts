import type { DeadLetter, WorkItem } from './work-item.ts'

/** One queue in memory. */
export interface Queue {
  /** In the order of acceptance. */
  line: WorkItem[]
  /** Those that stepped out of the line. */
  aside: WorkItem[]
  dead: DeadLetter[]
  dropped: number
}

/** A queue as operators see it. */
export interface QueueLength {
  pending: number
  /** Of them those that stepped out of the line. */
  aside: number
  deadLetters: number
  /** Since when the oldest item waits, ISO 8601. */
  oldest: string | null
  /** Items lost to the limit of the queue since the start. */
  dropped: number
}

export function emptyQueue(): Queue {
  return { line: [], aside: [], dead: [], dropped: 0 }
}

/** Takes the items with these sequences out. */
export function takeFrom(queue: Queue, sequences: ReadonlySet<number>): WorkItem[] {
  const [head] = queue.line
  // Nearly always it is this one, and the line may be long.
  if (head && sequences.size === 1 && sequences.has(head.sequence)) {
    queue.line.shift()
    return [head]
  }
  const isTaken = ({ sequence }: WorkItem) => sequences.has(sequence)
  const taken = [...queue.line, ...queue.aside].filter(isTaken)
  queue.line = queue.line.filter((item) => !isTaken(item))
  queue.aside = queue.aside.filter((item) => !isTaken(item))
  return taken
}

export function takeLettersFrom(queue: Queue, letters: readonly DeadLetter[]): DeadLetter[] {
  const taken = queue.dead.filter((letter) => letters.includes(letter))
  queue.dead = queue.dead.filter((letter) => !letters.includes(letter))
  return taken
}

/** Puts an item as it is now in the place of what it was, outside the line where it has stepped aside. */
export function replaceIn({ line, aside }: Queue, { sequence }: WorkItem, changed: WorkItem): void {
  const asidePlace = aside.findIndex((item) => item.sequence === sequence)
  if (asidePlace >= 0) aside[asidePlace] = changed
  const place = line.findIndex((item) => item.sequence === sequence)
  if (place < 0) return
  if (changed.asideUntil === undefined) line[place] = changed
  else {
    line.splice(place, 1)
    aside.push(changed)
  }
}

export function lengthOf({ line, aside, dead, dropped }: Queue): QueueLength {
  const times = [...line.slice(0, 1), ...aside].map(({ enqueuedAt }) => enqueuedAt)
  return {
    pending: line.length + aside.length,
    aside: aside.length,
    deadLetters: dead.length,
    oldest: times.length > 0 ? new Date(Math.min(...times)).toISOString() : null,
    dropped,
  }
}
