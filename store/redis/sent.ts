import { ConditionFailed, isConditional, keyOf, numbersTaken } from '../store.ts'
import { countOf } from './changes.ts'
import type { EndCommit, LogReader, Outcome } from './log.ts'
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
     * The reader has reached the group in the log. Settles its commits. If a caller has given up, resolves with the
     * commits instead: the reader ends them one by one, in their order. Waits for `writing` first, because only the end
     * of the write says whether replicas have the group.
     */
    async reached(
      number: number,
      outcome: Outcome,
      writing: Promise<void> | undefined,
    ): Promise<EndCommit[]> {
      const sent = unsettled.get(number)
      if (writing && sent && !sent.outcome) await writing
      const oneByOne = sent?.commits.some(({ isGivenUp }) => isGivenUp) ? sent : undefined
      settleUpTo(number, outcome, oneByOne)
      // Before the group, the reader may have found out that Redis has lost data: then nothing of it is settled.
      if (!oneByOne || !unsettled.delete(number)) return []
      return endsOf(oneByOne.commits, oneByOne.outcome ?? outcome)
    },

    /** Takes back all commits that are not settled. */
    withdrawAll(): TimedPending[] {
      const commits = [...unsettled.values()].flatMap((sent) => sent.commits)
      unsettled.clear()
      return commits
    },
  }

  /**
   * `lastOutcome`: the outcome of the last group, for the case that its answer did not arrive. `except`: stays unsettled.
   */
  function settleUpTo(
    last: number,
    lastOutcome: Outcome = { failed: [], base: 0, isLogged: false },
    except?: SentGroup,
  ): void {
    answeredAt = performance.now()
    for (const [number, group] of unsettled) {
      if (number > last || group === except) return
      const { commits, outcome = lastOutcome } = group
      // The reader has reached a later group before this one, so the entry of this one is missing.
      if (log() && number < last && outcome.isLogged && outcome !== lastOutcome) {
        onLost()
        return
      }
      unsettled.delete(number)
      for (const end of endsOf(commits, outcome)) end()
    }
  }
}

/** One function for each commit of a group, which ends it by the outcome. */
function endsOf(commits: readonly TimedPending[], { failed, base }: Outcome): EndCommit[] {
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
