import type { Attempts } from '../attempts.ts'
import type { WorkQueues } from '../queue/work-queues.ts'
import { isClosed } from '../target.ts'
import { createAttempt } from './attempt.ts'
import type { Leases } from './leases.ts'
import { createPassingOver, type IsStale, type WaitOf } from './passing-over.ts'
import { nextItem, type QueueRun, recover } from './queue-run.ts'
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
  } & Parameters<typeof createAttempt>[0] &
    Parameters<typeof createSettling>[0],
) {
  const { queues, leases, attempts, targetOf, waitOf, clock, log, stopping } = parts
  const attempt = createAttempt(parts)
  const settle = createSettling(parts)
  const passOver = createPassingOver(parts)

  return async (name: string, run: QueueRun): Promise<number | undefined> => {
    for (;;) {
      if (!leases.isOwn(name)) {
        await leases.release(name)
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
      const next = nextItem(run, queues.waiting(name), clock(), (item) => (before ? waitOf(item, before) : 0))
      if (stopping.aborted) return undefined
      if (!('item' in next)) return next.at
      if (!(await leases.take(name))) return undefined
      const target = targetOf(name)
      if (target === undefined) return undefined
      if (target !== 'gone' && !isClosed(target)) {
        try {
          if (await passOver(name, target, next)) continue
          const attempted = await attempt(name, run, next, target)
          if (attempted) await settle(name, run, attempted, target)
        } finally {
          delete run.current
        }
      }
    }
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
