import type { Pending } from '../group-commit.ts'
import { ConditionFailed, isConditional, keyOf, numbersTaken } from '../store.ts'
import { countOf } from './changes.ts'
import type { Outcome } from './log.ts'

/*
 * Groups of commits that were sent to Redis, and what becomes of them.
 */

export type Membership = { key: string; value: string }

export interface SentGroup {
  commits: readonly TimedPending[]
  /** Unknown before the answer. */
  outcome?: Outcome
}

export interface TimedPending extends Pending {
  /** It makes this node a member. */
  membership: Membership | undefined
  isSent: boolean
  isSettled: boolean
  /** Rejected, and may be applied all the same. */
  isGivenUp: boolean
  giveUp(): void
}

/** Tells each commit of a group what became of it. */
export function settleAll(commits: readonly TimedPending[], { failed, base }: Outcome): void {
  let before = 0
  let first = base
  for (const pending of commits) {
    const conditional = failed.length > 0 ? pending.changes.filter(isConditional) : []
    const broken = conditional.find((_, index) => failed.includes(before + index + 1))
    before += conditional.length
    const taken = base > 0 ? numbersTaken(pending.changes) : 0
    if (broken) pending.reject(new ConditionFailed(keyOf(broken)))
    else pending.resolve(taken > 0 ? first : 0)
    first += taken
  }
}

/** Where in a group that was sent the changes lie whose callers have given up since. */
export function givenUpOf(group: readonly TimedPending[]): [from: number, to: number][] {
  const ranges: [number, number][] = []
  let from = 1
  for (const { changes, isGivenUp } of group) {
    const next = from + countOf(changes)
    if (isGivenUp && next > from) ranges.push([from, next - 1])
    from = next
  }
  return ranges
}
