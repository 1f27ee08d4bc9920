import type { Pending } from '../group-commit.ts'
import type { Change } from '../store.ts'
import { startDeadline } from './deadline.ts'

export type Membership = { key: string; value: string }

export interface TimedPending extends Pending {
  /** It makes this node a member. */
  membership: Membership | undefined
  isSent: boolean
  isSettled: boolean
  /** Rejected, and may be applied all the same. */
  isGivenUp: boolean
  giveUp(): void
}

/** How long a commit waits for Redis. */
export interface Patience {
  timeoutMs: number
  /** When Redis last answered a commit, or told of one, on the clock of `performance.now()`. */
  answeredAt(): number
  /** Takes a commit back that was not sent. */
  withdraw(pending: TimedPending): void
  /** Why there is no answer. */
  reason(): string
}

/**
 * A commit that rejects when its time is up, wherever it is by then. While Redis answers commits before it, it goes on
 * waiting: to give up for a backlog would make clients send everything again, and the backlog longer.
 */
export function timedPending(
  changes: readonly Change[],
  membership: Membership | undefined,
  { resolve, reject }: Pick<Pending, 'resolve' | 'reject'>,
  patience: Patience,
): TimedPending {
  let endWait = startDeadline(patience.timeoutMs, giveUpInTime)
  function giveUpInTime(): void {
    const remaining = patience.answeredAt() + patience.timeoutMs - performance.now()
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
      const fate = pending.isSent ? 'it may still be applied' : 'nothing of it was applied'
      pending.reject(new Error(`not committed, ${fate}: ${patience.reason()}`))
    },
  }
  return pending
}
