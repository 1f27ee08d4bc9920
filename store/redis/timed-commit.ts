import type { Pending } from '../commit.ts'
import { startDeadline } from '../deadline.ts'
import { type Change, OutcomeUnknown } from '../store.ts'

export type MemberRecord = { key: string; value: string }

export interface TimedPending extends Pending {
  /** Set if the commit makes this node a member. */
  membership: MemberRecord | undefined
  isSent: boolean
  /** When Redis answered the commit, by `performance.now()`. */
  answeredAt: number | undefined
  isSettled: boolean
  /** The commit was rejected because Redis did not answer in time. Redis may still apply a sent commit. */
  isGivenUp: boolean
  giveUp(): void
}

/** How long a commit waits for Redis, and for the reader of the log. */
export interface Patience {
  timeoutMs: number
  /** When there was the last progress towards the end of this commit, by `performance.now()`. */
  progressAt(pending: TimedPending): number
  /** Removes a commit from the waiting ones, if it was not sent yet. */
  withdraw(pending: TimedPending): void
  /** Why the commit is not settled. */
  reason(pending: TimedPending): string
}

/**
 * Makes a commit that rejects after `timeoutMs` without progress. A backlog alone must not reject commits: clients
 * would send everything again, and make the backlog longer.
 */
export function timedPending(
  changes: readonly Change[],
  membership: MemberRecord | undefined,
  { resolve, reject }: Pick<Pending, 'resolve' | 'reject'>,
  patience: Patience,
): TimedPending {
  let endWait = startDeadline(patience.timeoutMs, giveUpInTime)
  function giveUpInTime(): void {
    const remaining = patience.progressAt(pending) + patience.timeoutMs - performance.now()
    if (remaining > 1) endWait = startDeadline(remaining, giveUpInTime)
    else pending.giveUp()
  }
  const settle = () => {
    endWait()
    pending.isSettled = true
  }
  const pending: TimedPending = {
    changes,
    membership,
    isAlone: membership !== undefined,
    isSent: false,
    answeredAt: undefined,
    isSettled: false,
    isGivenUp: false,
    resolve(first) {
      if (pending.isSettled) return
      settle()
      resolve(first)
    },
    reject(error) {
      settle()
      reject(error)
    },
    giveUp() {
      if (pending.isSettled) return
      patience.withdraw(pending)
      pending.isGivenUp = true
      const reason = patience.reason(pending)
      pending.reject(
        pending.isSent
          ? new OutcomeUnknown(`not committed, it may still be applied: ${reason}`)
          : new Error(`not committed, nothing of it was applied: ${reason}`),
      )
    },
  }
  return pending
}
