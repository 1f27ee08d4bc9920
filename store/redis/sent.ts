import { isConditional, keyOf, numbersTaken } from '../commit.ts'
import { ConditionFailed } from '../store.ts'
import { countOf } from './changes.ts'
import type { EndCommit, LogReader, Outcome } from './log.ts'
import type { TimedPending } from './timed-commit.ts'

interface SentGroup {
  commits: readonly TimedPending[]
  /** Undefined until Redis has answered. */
  outcome?: Outcome
}

/**
 * Keeps the groups of commits that were sent to Redis and are not settled, by their numbers. While the log has no
 * reader, a group settles when Redis answers. While the log has a reader, a group settles when the reader reaches its
 * log entry. A group without a log entry settles when the reader reaches the entry that the answer of Redis names.
 * Calls `onLost` if the answer says that a group has a log entry, but the log lacks it.
 */
export function createSentGroups(log: () => LogReader | undefined, onLost: () => void) {
  const unsettled = new Map<number, SentGroup>()
  /** When Redis last answered a group, or the reader of the log last reached a group. */
  let answeredAt = Number.NEGATIVE_INFINITY

  return {
    /**
     * When there was the last progress towards the end of a commit, by `performance.now()`. Until Redis has answered the
     * commit, every answer is progress. From then on, only the reader of the log makes progress.
     */
    progressAt: (pending: TimedPending): number =>
      pending.answeredAt === undefined
        ? answeredAt
        : Math.max(pending.answeredAt, log()?.progress.entriesAt() ?? pending.answeredAt),

    /** Notes a group as sent. Returns the commits to send: all that were not given up while they waited. */
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
      for (const pending of sent?.commits ?? []) pending.answeredAt = answeredAt
      const reader = log()
      // The reader settles a group when it reaches the log entry of the group. If Redis answered that there is such an
      // entry, but the group is still unsettled when the reader has passed `id`, the log lacks the entry.
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
     * The reader has reached the group in the log. Settles its commits. If one of the commits was given up, settles
     * none of them, and resolves with one function for each: the reader calls these functions one by one, in the order
     * of the commits. If Redis has not answered yet, first waits for `writing`, because only the end of the write says
     * whether enough replicas have the group.
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
      // If the group is gone, `settleUpTo` found that Redis has lost data, and `onLost` has rejected the commits.
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
   * Settles all groups up to the number `last`. `lastOutcome`: the outcome of the group `last`, in case Redis has not
   * answered it yet. `except`: a group to leave unsettled.
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
      // The reader has reached a later group without reaching this one: the log lacks the entry of this one.
      if (log() && number < last && outcome.isLogged && outcome !== lastOutcome) {
        onLost()
        return
      }
      unsettled.delete(number)
      for (const end of endsOf(commits, outcome)) end()
    }
  }
}

/** For each commit of a group, a function that ends the commit according to the outcome of the group. */
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
