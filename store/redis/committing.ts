import { createGroupCommit } from '../commit.ts'
import { createRunningWork } from '../running-work.ts'
import { type Change, Fenced, OutcomeUnknown } from '../store.ts'
import { isLoss, isNoAnswer, isOutOfMemory, lost } from './connection.ts'
import type { CommitOutcome, EndCommit, Known, LogReader } from './log.ts'
import type { createSending } from './sending.ts'
import { createSentGroups } from './sent.ts'
import { type MemberRecord, type TimedPending, timedPending } from './timed-commit.ts'

/**
 * Sends the commits of this node to Redis in numbered groups, and settles commits in the order of the calls. `sent.ts`
 * says when a group settles.
 */
export function createCommitting(parts: {
  sending: ReturnType<typeof createSending>
  timeoutMs: number
  /** The reader of the log. Undefined while the store is not followed. */
  log: () => LogReader | undefined
  known: Known
}) {
  const { sending, timeoutMs, log, known } = parts
  const commits = createGroupCommit((group: readonly TimedPending[]) => {
    writing = write(group)
    return writing
  })
  const sent = createSentGroups(log, onLost)
  const running = createRunningWork()
  const patience = {
    timeoutMs,
    progressAt: sent.progressAt,
    withdraw: commits.withdraw,
    reason: ({ answeredAt }: TimedPending) =>
      (answeredAt === undefined ? undefined : log()?.progress.problem()) ?? sending.reason(),
  }
  let number = 0
  let writing: Promise<void> | undefined
  /** Redis applies later groups only while this membership is stored. */
  let fence: MemberRecord | undefined
  /** Redis may have lost data that this node knows: all commits are refused. */
  let isLost = false
  /**
   * True after a `Fenced`, or after a further call of `enter`. All commits but that of `enter` are refused until
   * `enter` has resolved.
   */
  let isFenced = false

  return {
    commit(changes: readonly Change[]): Promise<number> {
      if (isLost) return Promise.reject(new Error(lost))
      if (isFenced) return Promise.reject(new Fenced())
      if (changes.length === 0) return Promise.resolve(0)
      return add(changes)
    },

    async enter(changes: readonly Change[], membership: MemberRecord): Promise<void> {
      if (isLost) throw new Error(lost)
      if (fence) refuseAll()
      await add(changes, membership)
    },

    onOwn: (number: number, outcome: CommitOutcome): Promise<EndCommit[]> =>
      sent.reached(number, outcome, sending.waitsForReplicas ? writing : undefined),

    onLost,

    /** Whether a commit is not settled yet. */
    isBusy: (): boolean => !commits.isIdle() || sent.isAwaited(),

    /** Resolves when all commits are settled. */
    ended: running.ended,
  }

  function add(changes: readonly Change[], membership?: MemberRecord): Promise<number> {
    const committed = new Promise<number>((resolve, reject) => {
      const entered =
        membership &&
        ((first: number) => {
          isFenced = false
          resolve(first)
        })
      commits.add(timedPending(changes, membership, { resolve: entered ?? resolve, reject }, patience))
    })
    running.add(committed)
    log()?.hurry()
    return committed
  }

  async function write(group: readonly TimedPending[]): Promise<void> {
    const current = ++number
    try {
      const answer = await sending.send(current, {
        take: () => sent.take(current, group),
        read: known.id,
        // The commit of `enter` is not fenced, because it makes this node a member.
        fence: group[0]?.membership ? undefined : fence,
      })
      known.saw(answer.id)
      fence = group[0]?.membership ?? fence
      sent.answered(current, answer)
    } catch (error) {
      if (isNoAnswer(error)) {
        for (const pending of group) pending.giveUp()
        return
      }
      sent.refused(current)
      const again = commitsToRetry(group, error)
      for (const pending of group) if (!again.includes(pending)) pending.reject(error)
      if (error instanceof Fenced) refuseAll()
      if (isLoss(error)) onLost()
      if (again.length > 0) await write(again)
    }
  }

  /**
   * Rejects all unsettled and later commits, because Redis may have lost data. The reader of the log reports a gap, and
   * the node then starts again.
   */
  function onLost(): void {
    if (!isLost) log()?.mustLeap(new Error(lost))
    isLost = true
    for (const pending of [...sent.withdrawAll(), ...commits.withdrawAll()]) {
      if (!pending.isSettled) pending.reject(pending.isSent ? new OutcomeUnknown(lost) : new Error(lost))
    }
  }

  /** Rejects all waiting commits and refuses all later ones, except the commit of `enter`. */
  function refuseAll(): void {
    isFenced = true
    for (const pending of commits.withdrawAll()) {
      if (pending.membership) commits.add(pending)
      else pending.reject(new Fenced())
    }
  }
}

/**
 * Returns the commits that the node sends again after Redis has refused their group. If Redis is out of memory, these
 * are the commits that only delete: they make room. If the whole group only deletes, returns none, because Redis has
 * just refused these commits. After any other error, returns none.
 */
function commitsToRetry(group: readonly TimedPending[], error: unknown): readonly TimedPending[] {
  const shrinking = isOutOfMemory(error) ? group.filter(({ changes }) => changes.every(isDeletion)) : []
  return shrinking.length < group.length ? shrinking : []
}

function isDeletion(change: Change): boolean {
  return 'del' in change || 'check' in change
}
