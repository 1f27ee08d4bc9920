import { isConditional, keyOf, numbersTaken } from '../commit.ts'
import { ConditionFailed } from '../store.ts'
import { countOf } from './changes.ts'
import type { CommitOutcome, EndCommit, LogReader } from './log.ts'
import type { TimedPending } from './timed-commit.ts'

interface SentGroup {
  commits: readonly TimedPending[]
  /** Undefined until Redis has answered. */
  outcome?: CommitOutcome
}

/**
 * Keeps sent groups of commits by number, until they are settled. While a reader follows the log, a group settles when
 * the reader has reached the entry in the answer (`commitLua`). Without a reader, the answer settles the group. Calls
 * `onLost` if the log lacks the entry of a group.
 */
export function createSentGroups(log: () => LogReader | undefined, onLost: () => void) {
  const unsettled = new Map<number, SentGroup>()
  /** When Redis last answered a group, or the reader of the log last reached a group. */
  let answeredAt = Number.NEGATIVE_INFINITY

  return {
    /**
     * When this commit last came nearer to its end (`Patience.progressAt`). Until Redis has answered the commit, each
     * answer to a group is progress. A group that the reader reaches is progress too. After the answer, each reading of
     * log entries is progress.
     */
    progressAt: (pending: TimedPending): number =>
      pending.answeredAt === undefined
        ? answeredAt
        : Math.max(pending.answeredAt, log()?.progress.entriesAt() ?? pending.answeredAt),

    /** Whether a group is not settled yet. */
    isAwaited: (): boolean => unsettled.size > 0,

    /** Notes a group as sent. Returns its commits, without those given up meanwhile. */
    take(number: number, group: readonly TimedPending[]): readonly TimedPending[] {
      const alive = group.filter(({ isSettled }) => !isSettled)
      unsettled.set(number, { commits: alive })
      for (const pending of alive) pending.isSent = true
      return alive
    },

    /** Redis has answered a group, which settles when the reader has reached the entry `id`. */
    answered(number: number, { id, outcome }: { id: string; outcome: CommitOutcome }): void {
      answeredAt = performance.now()
      const sent = unsettled.get(number)
      if (sent) sent.outcome = outcome
      for (const pending of sent?.commits ?? []) pending.answeredAt = answeredAt
      const reader = log()
      // The callback runs when the reader has passed the entry `id`. If a logged group is still unsettled then, the log
      // lacks the group's entry.
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
     * The reader has reached a group. If Redis has not answered the group yet, first waits for `writing`: too few
     * replicas may have the group. Then settles all earlier groups.
     *
     * If no commit of this group was given up, also settles this group, and resolves with an empty list. Otherwise
     * resolves with functions that end the commits of this group. The reader must call these functions in order.
     */
    async reached(
      number: number,
      outcome: CommitOutcome,
      writing: Promise<void> | undefined,
    ): Promise<EndCommit[]> {
      const sent = unsettled.get(number)
      if (writing && sent && !sent.outcome) await writing
      const oneByOne = sent?.commits.some(({ isGivenUp }) => isGivenUp) ? sent : undefined
      settleUpTo(number, outcome, oneByOne)
      // If `settleUpTo` has called `onLost`, the group is gone and its commits are rejected.
      if (!oneByOne || !unsettled.delete(number)) return []
      return endsOf(oneByOne.commits, oneByOne.outcome ?? outcome)
    },

    /** Removes all groups that are not settled, and returns their commits. */
    withdrawAll(): TimedPending[] {
      const commits = [...unsettled.values()].flatMap((sent) => sent.commits)
      unsettled.clear()
      return commits
    },
  }

  /**
   * Settles all groups up to the number `last`, but not `except`. A group that Redis has not answered yet settles with
   * `lastOutcome`.
   */
  function settleUpTo(
    last: number,
    lastOutcome: CommitOutcome = { failed: [], base: 0, isLogged: false },
    except?: SentGroup,
  ): void {
    answeredAt = performance.now()
    for (const [number, group] of unsettled) {
      if (number > last || group === except) return
      const { commits, outcome = lastOutcome } = group
      // The reader is at a later group: the log lacks the entry of this group.
      if (log() && number < last && outcome.isLogged && outcome !== lastOutcome) {
        onLost()
        return
      }
      unsettled.delete(number)
      for (const end of endsOf(commits, outcome)) end()
    }
  }
}

/** Functions that end the commits of a group according to its outcome. */
function endsOf(commits: readonly TimedPending[], { failed, base }: CommitOutcome): EndCommit[] {
  let conditionsBefore = 0
  let first = base
  let from = 1
  return commits.map((pending) => {
    const { changes } = pending
    const conditional = failed.length > 0 ? changes.filter(isConditional) : []
    const before = conditionsBefore
    const broken = conditional.find((_, index) => failed.includes(before + index + 1))
    conditionsBefore += conditional.length
    const taken = base > 0 ? numbersTaken(changes) : 0
    const own = { first: taken > 0 ? first : 0, from, upTo: from + countOf(changes) - 1 }
    first += taken
    from = own.upTo + 1
    return () => {
      if (pending.isGivenUp) return { from: own.from, upTo: own.upTo }
      if (broken) pending.reject(new ConditionFailed(keyOf(broken)))
      else pending.resolve(own.first)
      return undefined
    }
  })
}
