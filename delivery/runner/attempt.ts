import type { Attempt } from '../../event/outcome-schemas.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { Slots } from '../queue/limits.ts'
import type { WorkQueues } from '../queue/work-queues.ts'
import { type AttemptOutcome, isClosed, type Target, type TargetOf } from '../target.ts'
import { createAttemptStarts } from './attempt-starts.ts'
import type { Leases } from './leases.ts'
import type { IsStale, WaitingOf, WaitOf } from './passing-over.ts'
import { type Next, nextItem, type QueueRun } from './queue-run.ts'

export interface Attempted extends Next {
  outcome: AttemptOutcome
  attempt: Attempt
}

/** Returns a function that tries one item once. Undefined: no attempt was made, or the outcome does not count. */
export function createAttempt(parts: {
  queues: Pick<WorkQueues, 'payload' | 'giveUp' | 'noteAttempt' | 'forgetAttempt'>
  leases: Pick<Leases, 'holds'>
  targetOf: TargetOf
  isStale: IsStale
  waitOf: WaitOf
  waitingOf: WaitingOf
  /** Maximum number of attempts that may be under way at once. */
  slots: Slots
  clock: () => number
  log: Log
  metrics: Pick<Metrics, 'workAttempts' | 'workSeconds'>
  /** Aborts when no attempt may start any more. */
  stopping: AbortSignal
  /** Returns the signal that aborts an attempt which begins now. */
  cutting: () => AbortSignal
}) {
  const { queues, leases, targetOf, isStale, waitOf, waitingOf, clock, log, metrics, cutting } = parts
  const starts = createAttemptStarts(parts.slots, clock, parts.stopping)

  return async (name: string, run: QueueRun, next: Next, target: Target): Promise<Attempted | undefined> => {
    const leave = await starts.enter(target, run.failures > 0)
    try {
      // Item and target may have changed during the wait: check them again.
      const where = targetOf(name)
      if (where === undefined || where === 'gone' || isClosed(where)) return undefined
      const now = nextItem(run, waitingOf(name, run), clock(), (item) => waitOf(item, where))
      if (!('item' in now) || now.item.sequence !== next.item.sequence) return undefined
      const { item } = now
      if (isStale(item, where)) return undefined
      const { messageId } = item
      const triedAside = item.asideUntil !== undefined
      Object.assign(run, { current: item, triedAside, retryAsked: false })
      const payload = await queues.payload(name, item)
      // The wait was long, or the store was away: another node may have the queue by now.
      if (!leases.holds(name)) return undefined
      if (!payload) {
        log.error({ queue: name, messageId }, 'content of a work item is missing')
        await queues.giveUp(name, [item], 'its content is not stored any more')
        return undefined
      }
      if (where.isOwnDriver) {
        if (item.begun !== undefined) return unfinished(now, item.begun)
        await queues.noteAttempt(name, item, clock())
        if (!leases.holds(name)) {
          await queues.forgetAttempt(name, item)
          return undefined
        }
      }
      const signal = cutting()
      const started = performance.now()
      const time = new Date(clock()).toISOString()
      const outcome = await where.deliver(item, payload, signal)
      // Another attempt can begin now: the remaining steps do not use the endpoint.
      leave()
      // The hub cut the attempt short, so its outcome says nothing about the endpoint.
      if (signal.aborted && outcome.result !== 'acknowledged') {
        if (where.isOwnDriver) await queues.forgetAttempt(name, item)
        return undefined
      }
      const ms = performance.now() - started
      metrics.workAttempts.inc({ result: outcome.result })
      metrics.workSeconds.observe(ms / 1000)
      // The subscription was removed meanwhile, so nothing about the attempt may be stored.
      if (targetOf(name) === 'gone') return undefined
      starts.ended(target, outcome)
      const { status, reason } = outcome
      return { ...now, outcome, attempt: { messageId, time, status, duration: Math.round(ms), reason } }
    } finally {
      leave()
    }
  }
}

/**
 * An attempt whose outcome no node has stored: the hub ended while it was under way, perhaps because of it. It counts as
 * refused, so that an item that ends the hub steps aside like one that ends its driver.
 */
function unfinished(next: Next, begun: number): Attempted {
  const reason = 'the hub ended during the attempt'
  const time = new Date(begun).toISOString()
  return {
    ...next,
    outcome: { result: 'refused', status: null, reason },
    attempt: { messageId: next.item.messageId, time, status: null, duration: 0, reason },
  }
}
