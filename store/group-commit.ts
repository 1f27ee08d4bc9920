import type { Change } from './store.ts'

/** A commit, and the calls that settle it. */
export interface Pending {
  changes: readonly Change[]
  /** The commit gets a group of its own. */
  isAlone?: boolean
  underway?: ((first: number) => void) | undefined
  resolve(first: number): void
  reject(error: unknown): void
}

/**
 * Group commit: when a write ends, the next write takes the commits that wait, in the order of the calls. `write`
 * never rejects, and settles every commit of its group.
 */
export function createGroupCommit<P extends Pending>(write: (group: readonly P[]) => Promise<void>) {
  const waiting: P[] = []
  let writing: Promise<void> | undefined

  return {
    add(pending: P): void {
      waiting.push(pending)
      writing ??= writeWaiting()
    },
    /** Takes a commit back if it still waits. Else returns false. */
    withdraw(pending: P): boolean {
      const index = waiting.indexOf(pending)
      if (index >= 0) waiting.splice(index, 1)
      return index >= 0
    },
    /** Takes back all commits that wait, and returns them. */
    withdrawAll: (): P[] => waiting.splice(0),
    isIdle: () => writing === undefined,
    /** Resolves when no commit waits or is being written. */
    async ended(): Promise<void> {
      await writing
    },
  }

  async function writeWaiting(): Promise<void> {
    // Waits for a microtask, so that commits that follow at once share the first group.
    await undefined
    while (waiting.length > 0) await write(takeGroup(waiting))
    // In the same turn as the last look at `waiting`, so that the next commit starts `writeWaiting` again.
    writing = undefined
  }
}

/**
 * Size of one group: large enough that many commits share the cost of a write, and small enough that the deliveries
 * of one group reach the network before those of the next group pile up behind them.
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
