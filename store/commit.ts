import type { Change, Condition, ConditionalChange, Order } from './store.ts'

/*
 * The group commit that the drivers share, and the rules of the contract (`store.ts`) for conditions, numbers and event
 * times.
 */

/** A commit, and the functions that settle its promise. */
export interface Pending {
  changes: readonly Change[]
  /** The commit must be the only one in its group. */
  isAlone?: boolean
  underway?: ((first: number) => void) | undefined
  resolve(first: number): void
  reject(error: unknown): void
}

/**
 * A commit that arrives during a write has to wait. The next write takes a group of waiting commits, in the order of
 * the calls. `write` must settle every commit of its group, and must not reject.
 */
export function createGroupCommit<P extends Pending>(write: (group: readonly P[]) => Promise<void>) {
  const waiting: P[] = []
  let writing: Promise<void> | undefined

  return {
    add(pending: P): void {
      waiting.push(pending)
      writing ??= writeWaiting()
    },
    /** Removes a commit that still waits. Returns false if the commit no longer waits. */
    withdraw(pending: P): boolean {
      const index = waiting.indexOf(pending)
      if (index >= 0) waiting.splice(index, 1)
      return index >= 0
    },
    /** Removes all commits that still wait, and returns them. */
    withdrawAll: (): P[] => waiting.splice(0),
    /** Whether no commit waits or is being written. */
    isIdle: () => writing === undefined,
    /** The commits that wait, in the order of the calls. */
    waiting: (): readonly P[] => waiting,
    /** Resolves when no commit waits or is being written. */
    async ended(): Promise<void> {
      await writing
    },
  }

  async function writeWaiting(): Promise<void> {
    // Waits for a microtask, so that commits added without a pause share the first group.
    await undefined
    while (waiting.length > 0) await write(takeGroup(waiting))
    // No `await` came after the last check of `waiting`, so no commit was added in between.
    writing = undefined
  }
}

/**
 * Limits of one group: so high that many commits share the cost of a write, and so low that the deliveries of a group
 * reach the network before the deliveries of the next group begin.
 */
const groupBytes = 256 * 1024
const groupChanges = 512

function takeGroup<P extends Pending>(waiting: P[]): P[] {
  let bytes = 0
  let changes = 0
  let count = 0
  for (const pending of waiting) {
    if (count > 0 && (pending.isAlone || waiting[0]?.isAlone)) break
    changes += pending.changes.length
    for (const change of pending.changes) bytes += 'value' in change ? change.value.length : 0
    if (count > 0 && (changes > groupChanges || bytes > groupBytes)) break
    count++
  }
  return waiting.splice(0, count)
}

/** Whether `condition` holds for the stored entry. `stored` is undefined if there is no entry. */
export function holds(
  condition: Condition,
  stored: { value: Buffer; time: number | undefined } | undefined,
): boolean {
  if (condition === 'absent') return stored === undefined
  if (condition === 'present') return stored !== undefined
  if ('value' in condition) return stored?.value.equals(Buffer.from(condition.value)) ?? false
  if ('time' in condition) return stored?.time === condition.time
  return stored?.time === undefined || stored.time <= condition.notNewerThan
}

/** Whether a change has a condition. */
export function isConditional(change: Change): change is ConditionalChange {
  return 'when' in change && change.when !== undefined
}

/** The key of a change; '' for a `tell`. */
export function keyOf(change: Change): string {
  if ('put' in change) return change.put
  if ('check' in change) return change.check
  return 'del' in change ? change.del : ''
}

/** How many digits a number has in keys and values: enough for every safe integer. */
export const digits = 16

/** A number, such as a position or a sequence, as text. Leading zeros make keys sort by number. */
export function digitsOf(number: number): string {
  return String(number).padStart(digits, '0')
}

/** How many numbers a commit takes. */
export function numbersTaken(changes: readonly Change[]): number {
  let taken = 0
  for (const change of changes) {
    if ('numbered' in change && change.numbered) taken = Math.max(taken, change.numbered.nth + 1)
  }
  return taken
}

/** Returns a change with its number, or the change itself if it has none. `first`: the first number of the commit. */
export function withNumber(change: Change, first: number): Change {
  if (!('numbered' in change) || !change.numbered) return change
  const { order, when, numbered, isQuiet } = change
  return {
    put: numberedKey(change, first),
    value: numberedValue(change, first),
    order,
    when,
    numbered,
    isQuiet,
  }
}

/** The key of a `put`, with its number if one belongs there. `first`: the first number of the commit. */
export function numberedKey({ put, numbered }: Put, first: number): string {
  return numbered && numbered.at !== 'value' ? put + digitsOf(first + numbered.nth) : put
}

/** The value of a `put`, as `numberedKey`. */
export function numberedValue({ value, numbered }: Put, first: number): Buffer | string {
  return numbered && numbered.at !== 'key' ? prefixed(digitsOf(first + numbered.nth), value) : value
}

type Put = Extract<Change, { put: string }>

function prefixed(number: string, value: Buffer | string): Buffer | string {
  return typeof value === 'string' ? number + value : Buffer.concat([Buffer.from(number), value])
}

/** Whether an entry with the event time `stored` stays when a change with the order `incoming` comes. */
export function keepsStored(stored: number, incoming: Order): boolean {
  return stored > incoming.time && stored <= incoming.horizon
}
