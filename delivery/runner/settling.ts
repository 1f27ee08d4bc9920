import type { Change } from '../../store/store.ts'
import { untilDone } from '../../store/until-done.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Attempts } from '../attempts.ts'
import type { WorkQueues } from '../queue/work-queues.ts'
import type { AttemptOutcome, Target } from '../target.ts'
import type { Attempted } from './attempt.ts'
import { backOff } from './back-off.ts'
import type { WaitingOf } from './passing-over.ts'
import { maxPauseMs, mustPause, type QueueRun, recover } from './queue-run.ts'

/** Longest pause where events are not worth delivering for long, milliseconds (deliveries.md, "Worth"). */
const maxPauseOfWorthMs = 15_000

/** Returns a function that stores an outcome. Where needed, that function pauses the queue or sets an item aside. */
export function createSettling(parts: {
  waitingOf: WaitingOf
  queues: Pick<WorkQueues, 'acknowledge' | 'postpone' | 'setAside'>
  attempts: Pick<Attempts, 'add'>
  /** Further changes for the commit that stores an outcome. `isAside`: an item that is set aside was refused again. */
  noted: (queue: string, outcome: AttemptOutcome, isAside: boolean) => Change[]
  /**
   * Called after the result `gone`: the endpoint wants no more messages. Returns false if the hub is to pause the
   * queue, and to try again later.
   */
  onGone: (queue: string) => Promise<boolean>
  clock: () => number
  random: () => number
  log: Log
  stopping: AbortSignal
}) {
  const { queues, waitingOf, attempts, noted, onGone, clock, random, log, stopping } = parts

  return async (name: string, run: QueueRun, attempted: Attempted, target: Target): Promise<void> => {
    const { item, refusedHead, outcome, attempt } = attempted
    const isAside = item.asideUntil !== undefined
    const refused = outcome.result === 'refused'
    const standing = noted(name, outcome, isAside && refused)
    const alongside = [...(await untilStored(() => attempts.add(name, attempt))), ...standing]
    if (outcome.result === 'acknowledged') {
      await untilStored(() => queues.acknowledge(name, item, alongside))
      if (refusedHead) await stepAside(name, refusedHead, target)
      if (run.failures > 0) log.info({ queue: name, failures: run.failures }, 'queue goes on')
      recover(run)
      return
    }
    run.lastReason = outcome.reason
    const again = isAside ? { asideUntil: clock() + pauseAfter(item.tries + 1, target) } : {}
    await untilStored(() => queues.postpone(name, item, attempt, { refused, ...again }, alongside))
    if (outcome.result === 'gone' && (await untilStored(() => onGone(name)))) {
      log.warn({ queue: name, status: outcome.status }, 'the endpoint is gone')
      return
    }
    const hasSecond = waitingOf(name, run).second !== undefined
    if (mustPause(run, attempted, refused, hasSecond)) pause(name, run, outcome, target)
  }

  /** Sets a refused head aside: the endpoint acknowledged the next message. */
  async function stepAside(name: string, head: Attempted['item'], target: Target): Promise<void> {
    const { messageId, refusals } = head
    log.warn({ queue: name, messageId, refusals }, 'refused message steps aside')
    await untilStored(() => queues.setAside(name, head, clock() + pauseAfter(refusals, target)))
  }

  function pause(
    name: string,
    run: QueueRun,
    { status, reason, retryAfterMs = 0 }: AttemptOutcome,
    target: Target,
  ): void {
    run.failures++
    const { failures } = run
    const ms = pauseAfter(failures, target, retryAfterMs)
    Object.assign(run, { notBefore: run.retryAsked ? 0 : clock() + ms, pauseMs: ms })
    const line = { queue: name, status, reason, failures, retryInMs: Math.round(ms) }
    // Later failures in a row tell operators nothing new.
    if (failures === 1) log.warn(line, 'delivery failed')
    else log.debug(line, 'delivery failed')
  }

  /** Milliseconds until the next attempt. `leastMs`: the endpoint asked for as much. */
  function pauseAfter(failures: number, { maxAge }: Target, leastMs = 0): number {
    const longest = maxAge === undefined ? maxPauseMs : maxPauseOfWorthMs
    return Math.min(longest, Math.max(backOff(failures, random), leastMs))
  }

  /** Calls `store` until it succeeds, because the delivery has happened already. Rejects when the runner stops. */
  async function untilStored<Result>(store: () => Promise<Result>): Promise<Result> {
    const failed = (err: unknown) => log.error({ err }, 'state of a queue not stored')
    const stored = await untilDone(store, { failed, signal: stopping })
    if (!stored) throw stopping.reason
    return stored.result
  }
}
