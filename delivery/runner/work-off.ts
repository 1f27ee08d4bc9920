import type { Attempts } from '../attempts.ts'
import type { WorkQueues } from '../queue/work-queues.ts'
import { isClosed, type Target } from '../target.ts'
import { createAttempt } from './attempt.ts'
import type { Leases } from './leases.ts'
import { createPassingOver, type IsStale, type WaitOf } from './passing-over.ts'
import { type Next, nextItem, type QueueRun, recover } from './queue-run.ts'
import { type Runs, whole } from './runs.ts'
import { createSettling } from './settling.ts'

/**
 * Returns a function that works a queue off until no item can be tried now. That function resolves with the time of the
 * next try, milliseconds since the epoch. Undefined: no such time is set.
 */
export function createWorkOff(
  parts: {
    queues: WorkQueues
    leases: Leases
    attempts: Attempts
    isStale: IsStale
    waitOf: WaitOf
    runs: Runs
    /** Called when a delivery of a queue has ended. */
    ended: (name: string) => void
    /** Called when a target acknowledges after failures. */
    recovered: (target: Target) => void
  } & Parameters<typeof createAttempt>[0] &
    Parameters<typeof createSettling>[0],
) {
  const { queues, leases, attempts, targetOf, waitOf, waitingOf, runs, clock, log, stopping } = parts
  const attempt = createAttempt(parts)
  const settle = createSettling(parts)
  const passOver = createPassingOver({ ...parts, isUnderWay: runs.isUnderWay })

  return async (name: string, run: QueueRun): Promise<number | undefined> => {
    for (;;) {
      if (!leases.isOwn(name)) {
        // Another lane is under way: it releases the lease when it has ended.
        if (!runs.isBusy(name)) await leases.release(name)
        return undefined
      }
      const before = targetOf(name)
      if (isClosed(before)) {
        await giveUpAll(name, run)
        return undefined
      }
      if (before === 'gone') {
        await remove(name)
        return undefined
      }
      // A queue in lanes has no run as a whole: that of a moment ago has nothing to do.
      if (before?.lanes !== undefined && run.lane === whole) return undefined
      const waiting = waitingOf(name, run)
      const next = nextItem(run, waiting, clock(), (item) => (before ? waitOf(item, before) : 0))
      if (stopping.aborted) return undefined
      if (waiting.isBlocked) runs.wait(run)
      else if (!('item' in next)) run.waitingSince = undefined
      if (!('item' in next)) return next.at
      if (!(await leases.take(name))) return undefined
      const target = targetOf(name)
      if (target === undefined) return undefined
      if (target !== 'gone' && !isClosed(target)) {
        if (await passOver(name, target, next)) {
          parts.ended(name)
          continue
        }
        if (!runs.begin(name, run, next.item, target.lanes)) return undefined
        try {
          await tryOnce(name, run, next, target)
        } finally {
          run.current = undefined
          run.chosen = undefined
          parts.ended(name)
        }
      }
    }
  }

  async function tryOnce(name: string, run: QueueRun, next: Next, target: Target): Promise<void> {
    const { failures } = run
    const attempted = await attempt(name, run, next, target)
    if (attempted) await settle(name, run, attempted, target)
    if (failures > 0 && attempted?.outcome.result === 'acknowledged') parts.recovered(target)
  }

  /** Removes the queue of a removed subscription, with its dead letters and attempts. */
  async function remove(name: string): Promise<void> {
    if (stopping.aborted || !(await leases.take(name))) return
    await queues.drop(name, await attempts.drop(name))
    await leases.release(name)
  }

  /** Gives up all items that wait in a closed queue. */
  async function giveUpAll(name: string, run: QueueRun): Promise<void> {
    if (stopping.aborted || queues.lengthOf(name).pending === 0 || !(await leases.take(name))) return
    const target = targetOf(name)
    if (!isClosed(target)) return
    const count = await queues.giveUpAll(name, target.closed)
    log.info({ queue: name, items: count, reason: target.closed }, 'queue closed')
    recover(run)
  }
}
