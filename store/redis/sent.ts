import { ConditionFailed, isConditional, keyOf, numbersTaken } from '../store.ts'
import { countOf } from './changes.ts'
import type { GivenUp, LogReader, Outcome } from './log.ts'
import type { TimedPending } from './timed-commit.ts'

interface SentGroup {
  commits: readonly TimedPending[]
  /** Unknown before the answer. */
  outcome?: Outcome
}

/**
 * Groups that were sent to Redis and are not settled, by number. Without a `log`, the answer settles a group. Else the
 * reader of the log settles a group at its log entry. If a group has no log entry, the reader settles it at the entry
 * that the answer names. `onLost` is called if Redis answered a group whose log entry is missing.
 */
export function createSentGroups(log: () => LogReader | undefined, onLost: () => void) {
  const unsettled = new Map<number, SentGroup>()
  let answeredAt = Number.NEGATIVE_INFINITY

  return {
    /** When Redis last answered a group, or the reader of the log last reached a group; as `performance.now()`. */
    answeredAt: (): number => answeredAt,

    /** Notes a group as sent, and returns its commits without those whose callers have given up. */
    take(number: number, group: readonly TimedPending[]): readonly TimedPending[] {
      const alive = group.filter(({ isSettled }) => !isSettled)
      unsettled.set(number, { commits: alive })
      for (const pending of alive) pending.isSent = true
      return alive
    },

    /** Redis has answered a group. `id`: the log entry that the reader must reach before the group is settled. */
    answered(number: number, { id, outcome }: { id: string; outcome: Outcome }): void {
      answeredAt = performance.now()
      const sent = unsettled.get(number)
      if (sent) sent.outcome = outcome
      const reader = log()
      // If the group has a log entry, the reader settled the group there. If it did not, the entry is missing.
      if (reader)
        reader.whenPassed(id, () =>
          outcome.isLogged && unsettled.has(number) ? onLost() : settleUpTo(number),
        )
      else settleUpTo(number)
    },

    /** Redis has refused a group. */
    refused(number: number): void {
      answeredAt = performance.now()
      unsettled.delete(number)
    },

    /**
     * The reader has reached the group in the log. Resolves with the changes whose callers gave up. Waits for `writing`
     * first, because only the end of the write says whether replicas have the group.
     */
    async told(number: number, outcome: Outcome, writing: Promise<void> | undefined): Promise<GivenUp> {
      const sent = unsettled.get(number)
      if (writing && sent && !sent.outcome) await writing
      settleUpTo(number, outcome)
      return givenUpOf(sent?.commits ?? [])
    },

    /** Takes back all commits that are not settled. */
    withdrawAll(): TimedPending[] {
      const commits = [...unsettled.values()].flatMap((sent) => sent.commits)
      unsettled.clear()
      return commits
    },
  }

  /** `lastOutcome`: the outcome of the last group, for the case that its answer did not arrive. */
  function settleUpTo(last: number, lastOutcome: Outcome = { failed: [], base: 0, isLogged: false }): void {
    answeredAt = performance.now()
    for (const [number, { commits, outcome = lastOutcome }] of unsettled) {
      if (number > last) return
      // The reader has reached a later group before this one, so the entry of this one is missing.
      if (log() && number < last && outcome.isLogged && outcome !== lastOutcome) {
        onLost()
        return
      }
      unsettled.delete(number)
      settleAll(commits, outcome)
    }
  }
}

/** Settles each commit of a group by the outcome. */
function settleAll(commits: readonly TimedPending[], { failed, base }: Outcome): void {
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

/** Ranges of the changes of a sent group whose callers have given up since. */
function givenUpOf(group: readonly TimedPending[]): [from: number, to: number][] {
  const ranges: [number, number][] = []
  let from = 1
  for (const { changes, isGivenUp } of group) {
    const next = from + countOf(changes)
    if (isGivenUp && next > from) ranges.push([from, next - 1])
    from = next
  }
  return ranges
}
