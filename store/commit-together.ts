import type { Change, Store } from './store.ts'

/** Prepares one part of a commit. */
export type Prepare = () => CommitPart

/** What one part of the hub adds to a commit, and how it follows the commit in memory. */
export interface CommitPart {
  changes: readonly Change[]
  /**
   * Runs once before `end` if the commit takes effect, in the order of the commits. May run while the driver still
   * writes (`Store.commit`): then the commit may still fail. `first`: the first number of the commit.
   */
  begin?(first: number): void
  /** Runs once, in the turn in which the commit ends, also if another part fails. `commitTogether` waits for the promise. */
  end?(how: CommitEnd): Promise<unknown> | undefined
}

/** The first number that a commit took. `failed`: the commit is not stored, or that is not certain. */
export type CommitEnd = number | 'failed'

/**
 * Makes one commit of several parts, in the order of `preparations`. They run in this turn of the event loop. Every part
 * ends, whatever happens. Rejects as `Store.commit` does, and if a part fails.
 */
export async function commitTogether(
  store: Pick<Store, 'commit'>,
  preparations: readonly Prepare[],
): Promise<void> {
  const parts: CommitPart[] = []
  const changes: Change[] = []
  const rest: Promise<unknown>[] = []
  let isBegun = false
  const begin = (first: number) => {
    isBegun = true
    for (const part of parts) part.begin?.(first)
  }
  let how: CommitEnd = 'failed'
  try {
    for (const prepare of preparations) {
      const part = prepare()
      parts.push(part)
      changes.push(...part.changes)
    }
    how = await store.commit(changes, begin)
    if (!isBegun) begin(how)
  } finally {
    // No `await` before: this node would receive a later commit of another node first.
    for (const part of parts) {
      const after = endOf(part, how)
      if (after) rest.push(after)
    }
    if (rest.length > 0) await Promise.all(rest)
  }
}

/** Ends a part. If that fails, rejects instead of throwing: the other parts have to end as well. */
function endOf(part: CommitPart, how: CommitEnd): Promise<unknown> | undefined {
  try {
    return part.end?.(how)
  } catch (error) {
    return Promise.reject(error)
  }
}
