import type { Change } from './store.ts'

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
 * Group commit: commits that arrive during a write wait. When the write ends, the next write takes them as one group,
 * in the order of the calls. `write` must not reject; it is responsible for settling every commit of its group.
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
    isIdle: () => writing === undefined,
    /** Resolves when no commit waits or is being written. */
    async ended(): Promise<void> {
      await writing
    },
  }

  async function writeWaiting(): Promise<void> {
    // Waits for a microtask: commits that the same code adds without a pause then share the first group.
    await undefined
    while (waiting.length > 0) await write(takeGroup(waiting))
    // No `await` comes between the last check of `waiting` and this line, so no commit was added in between. The next
    // `add` starts `writeWaiting` again.
    writing = undefined
  }
}

/**
 * Limits of one group. They are high enough that many commits share the cost of a write. They are low enough that the
 * deliveries of one group reach the network before the deliveries of the next group begin.
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
