import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTurns } from '../listener/turns.ts'
import { once } from '../store/once.ts'
import { createRunningWork } from '../store/running-work.ts'
import type { Change } from '../store/store.ts'
import { untilDone } from '../store/until-done.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { createAttempts } from './attempts.ts'
import { backOff } from './back-off.ts'
import { createConcurrency } from './concurrency.ts'
import type { Leases } from './leases.ts'
import type { Places } from './queue/limits.ts'
import type { Attempt, WorkItem } from './queue/work-item.ts'
import type { WorkQueues } from './queue/work-queues.ts'
import { createQueueRun, type QueueRun, type QueueRunState, runState } from './queue-run.ts'
import { createSlowStart } from './slow-start.ts'
import { isClosed, type Outcome, type Target, type TargetOf } from './target.ts'

/** Refusals after which a message steps out of the way of those behind it (design.md §10). */
const maxRefusals = 5
/** An endless `Retry-After` must not silence a queue for days. */
const maxRetryAfterMs = 3_600_000
/** Until a store that failed is asked again. */
const storeRetryMs = 1_000
const tidyMs = 60_000
/** Deliveries that begin in one turn of the event loop: handshakes of hundreds at once would hold up everything. */
const startsPerTurn = 4
/** For deliveries under way when the hub stops. They are repeated after the next start. */
const stopMs = 5_000

/**
 * Works off the queues: each in its order, one item at a time, all beside each other. What fails is tried
 * again after a growing pause; only its own queue waits.
 */
export function createRunner(parts: {
  queues: WorkQueues
  leases: Leases
  attempts: ReturnType<typeof createAttempts>
  targetOf: TargetOf
  /** What else is to be stored with the outcome of a try. `isAside`: the line goes on all the same. */
  noted: (queue: string, outcome: Outcome, isAside: boolean) => Change[]
  /** An endpoint wants nothing more. True: nothing more is sent there for now. */
  onGone: (queue: string) => Promise<boolean>
  /** Deliveries that may be under way at once. */
  places: Places
  clock: () => number
  random: () => number
  log: Log
  metrics: Pick<Metrics, 'workAttempts' | 'workSeconds'>
}) {
  const { queues, leases, attempts, targetOf, noted, onGone, clock, random, log, metrics } = parts
  const runs = new Map<string, QueueRun>()
  const running = createRunningWork()
  const healthy = createConcurrency(parts.places.healthy)
  const failing = createConcurrency(parts.places.failing)
  const slowStart = createSlowStart(clock)
  const starts = createTurns(startsPerTurn)
  const stopping = new AbortController()
  const cutting = new AbortController()
  // One for everything that is under way: no leak.
  setMaxListeners(0, stopping.signal, cutting.signal)
  let tidying: NodeJS.Timeout | undefined

  return {
    start(): void {
      queues.onAppended(wake)
      leases.onFreed(wake, wakeAll)
      wakeAll()
      tidying = setInterval(tidy, tidyMs).unref()
      tidy()
    },

    /** Tries a queue again now, whatever happened before. */
    retryNow(name: string): void {
      runOf(name).notBefore = 0
      wake(name)
    },

    /** Looks at every queue again: where its items go may have changed. */
    wakeAll,

    stateOf,

    /** The queues that are worked off here and are not idle. */
    states: (): [queue: string, state: QueueRunState][] =>
      [...runs.keys()].filter(leases.isOwn).map((name) => [name, stateOf(name)]),

    /** Queues that this node looks after and could deliver from now, and does not. */
    standing: (): string[] =>
      queues.names().filter((name) => {
        if (!leases.isOwn(name) || runs.get(name)?.running) return false
        const target = targetOf(name)
        return (
          target !== undefined &&
          target !== 'gone' &&
          'item' in nextOf(name, runs.get(name) ?? createQueueRun())
        )
      }),

    /** Starts nothing more; resolves when what is under way has ended, after a while by force. */
    async stop(): Promise<void> {
      stopping.abort()
      clearInterval(tidying)
      for (const run of runs.values()) clearTimeout(run.timer)
      const force = setTimeout(() => cutting.abort(), stopMs)
      await running.ended()
      clearTimeout(force)
    },
  }

  function stateOf(name: string): QueueRunState {
    const waiting = { ...queues.waiting(name), aside: queues.nextAside(name) }
    return runState(runs.get(name), waiting, clock())
  }

  function wakeAll(): void {
    for (const name of queues.names()) wake(name)
  }

  function wake(name: string): void {
    const run = runOf(name)
    if (run.probeOnArrival && queues.waiting(name).second) {
      Object.assign(run, { probeOnArrival: false, probing: true, notBefore: 0 })
    }
    run.isWoken = true
    if (run.running || stopping.signal.aborted) return
    clearTimeout(run.timer)
    run.running = true
    running.add(begin(name, run))
  }

  /** Works off what can be worked off now, and sets a timer for what comes later. Never rejects. */
  async function begin(name: string, run: QueueRun): Promise<void> {
    try {
      while (run.isWoken) {
        run.isWoken = false
        await workOff(name, run)
      }
    } catch (err) {
      if (stopping.signal.aborted) return
      log.error({ err, queue: name }, 'queue stopped for a moment')
      sleepUntil(name, run, clock() + storeRetryMs)
    } finally {
      run.running = false
      delete run.current
      if (isForgettable(name, run)) runs.delete(name)
    }
  }

  async function workOff(name: string, run: QueueRun): Promise<void> {
    for (;;) {
      if (!leases.isOwn(name)) {
        await leases.release(name)
        return
      }
      if (isClosed(targetOf(name))) {
        await giveUpAll(name, run)
        return
      }
      const next = nextOf(name, run)
      if (stopping.signal.aborted || !('item' in next)) {
        sleepUntil(name, run, 'at' in next ? next.at : undefined)
        return
      }
      if (!(await leases.take(name))) return
      const target = targetOf(name)
      if (target === undefined) return
      if (target === 'gone') await queues.drop(name, await attempts.drop(name))
      else if (!isClosed(target)) await turn(name, run, next, target)
    }
  }

  async function giveUpAll(name: string, run: QueueRun): Promise<void> {
    if (stopping.signal.aborted || queues.lengthOf(name).pending === 0 || !(await leases.take(name))) return
    const target = targetOf(name)
    if (!isClosed(target)) return
    const count = await queues.giveUpAll(name, target.closed)
    log.info({ queue: name, items: count, reason: target.closed }, 'queue closed')
    Object.assign(run, { failures: 0, notBefore: 0, lastReason: null, probing: false })
  }

  function nextOf(name: string, run: QueueRun): Turn | { at?: number } {
    const { head, second, due } = queues.waiting(name)
    const at = queues.nextAside(name)?.asideUntil
    if (!head && !due) return at === undefined ? {} : { at }
    const now = clock()
    // Further ahead than any pause: the clock was set back.
    if (run.notBefore > now + maxRetryAfterMs) run.notBefore = 0
    if (run.notBefore > now) return { at: run.notBefore }
    if (due && !(head && run.triedAside)) return { item: due }
    const isProbing = run.probing && head !== undefined && head.refusals >= maxRefusals
    if (isProbing && second) return { item: second, refusedHead: head }
    return head ? { item: head } : {}
  }

  function sleepUntil(name: string, run: QueueRun, at: number | undefined): void {
    if (at === undefined || stopping.signal.aborted) return
    clearTimeout(run.timer)
    run.timer = setTimeout(() => wake(name), Math.max(1, at - clock()))
  }

  /** One item, tried once. */
  async function turn(name: string, run: QueueRun, next: Turn, target: Target): Promise<void> {
    // Before it takes a place, which others could use meanwhile.
    const pause = slowStart.waitFor(target)
    if (pause > 0) await sleep(pause, undefined, { signal: stopping.signal })
    const gate = run.failures > 0 ? failing : healthy
    const leave = once(await gate.enter(target.endpoint, target.owner))
    try {
      await new Promise<void>((resolve) => starts.enter(resolve, { asker: target.owner }) && resolve())
      stopping.signal.throwIfAborted()
      // It may have been removed while we waited for our place, or its queue closed.
      const now = nextOf(name, run)
      if (!('item' in now) || now.item.sequence !== next.item.sequence) return
      const where = targetOf(name)
      if (where === undefined || where === 'gone' || isClosed(where)) return
      run.current = now.item
      run.triedAside = now.item.asideUntil !== undefined
      const payload = await queues.payload(name, now.item)
      if (!payload) {
        log.error({ queue: name, messageId: now.item.messageId }, 'content of a work item is missing')
        await queues.giveUp(name, [now.item], 'its content is not stored any more')
        return
      }
      const started = performance.now()
      const time = new Date(clock()).toISOString()
      const outcome = await where.deliver(now.item, payload, cutting.signal)
      // What follows is between us and the store: the place is for the next one.
      leave()
      // Cut short by us: that says nothing of the endpoint.
      if (cutting.signal.aborted && outcome.result !== 'acknowledged') return
      const ms = performance.now() - started
      metrics.workAttempts.inc({ result: outcome.result })
      metrics.workSeconds.observe(ms / 1000)
      const { status, reason } = outcome
      const { messageId } = now.item
      const attempt: Attempt = { messageId, time, status, duration: Math.round(ms), reason }
      await settle({ name, run, ...now, outcome, attempt, target })
    } finally {
      delete run.current
      leave()
    }
  }

  async function settle(done: Done): Promise<void> {
    const { name, run, item, refusedHead, outcome, attempt, target } = done
    // Its subscription was removed meanwhile: nothing may be left behind.
    if (targetOf(name) === 'gone') return
    const isAside = item.asideUntil !== undefined
    const standing = noted(name, outcome, isAside && outcome.result === 'refused')
    const alongside = [...(await untilStored(() => attempts.add(name, attempt))), ...standing]
    if (outcome.result === 'acknowledged') {
      slowStart.succeeded(target)
      await untilStored(() => queues.acknowledge(name, item, alongside))
      if (refusedHead) await stepAside(name, refusedHead)
      if (run.failures > 0) log.info({ queue: name, failures: run.failures }, 'queue goes on')
      Object.assign(run, { failures: 0, notBefore: 0, lastReason: null, probing: false })
      return
    }
    slowStart.failed(target)
    run.lastReason = outcome.reason
    const refused = outcome.result === 'refused'
    const again = isAside ? { asideUntil: clock() + backOff(item.tries + 1, random) } : {}
    await untilStored(() => queues.postpone(name, item, attempt, { refused, ...again }, alongside))
    if (outcome.result === 'gone' && (await untilStored(() => onGone(name)))) {
      log.warn({ queue: name, status: outcome.status }, 'the endpoint is gone')
      return
    }
    // It has had its chance to be the only one that is refused.
    if (isAside && refused) return
    const isTooOften = refused && !refusedHead && item.refusals + 1 >= maxRefusals
    if (isTooOften && queues.waiting(name).second) {
      run.probing = true
      return
    }
    run.probing = false
    run.probeOnArrival = isTooOften
    pause(name, run, outcome)
  }

  function pause(name: string, run: QueueRun, { status, reason, retryAfterMs = 0 }: Outcome): void {
    run.failures++
    const ms = Math.max(backOff(run.failures, random), Math.min(retryAfterMs, maxRetryAfterMs))
    run.notBefore = clock() + ms
    // The first of a row is news.
    const level = run.failures === 1 ? 'warn' : 'debug'
    log[level](
      { queue: name, status, reason, failures: run.failures, retryInMs: Math.round(ms) },
      'delivery failed',
    )
  }

  async function stepAside(name: string, head: WorkItem): Promise<void> {
    log.warn(
      { queue: name, messageId: head.messageId, refusals: head.refusals },
      'refused message steps aside',
    )
    await untilStored(() => queues.setAside(name, head, clock() + backOff(head.refusals, random)))
  }

  /** What has happened outside cannot be undone: it is stored as soon as that works. Rejects when the runner stops. */
  async function untilStored<Result>(store: () => Promise<Result>): Promise<Result> {
    const failed = (err: unknown) => log.error({ err }, 'state of a queue not stored')
    const stored = await untilDone(store, { failed, signal: stopping.signal })
    if (!stored) throw stopping.signal.reason
    return stored.result
  }

  function tidy(): void {
    queues
      .tidy(
        (name, item) => runs.get(name)?.current?.sequence === item.sequence,
        (name) => isClosed(targetOf(name)),
      )
      .catch((err: unknown) => log.error({ err }, 'queues not tidied'))
  }

  function runOf(name: string): QueueRun {
    const known = runs.get(name)
    if (known) return known
    const run = createQueueRun()
    runs.set(name, run)
    return run
  }

  function isForgettable(name: string, run: QueueRun): boolean {
    const isSettled = run.failures === 0 || targetOf(name) === 'gone'
    return isSettled && queues.lengthOf(name).pending === 0
  }
}

interface Turn {
  item: WorkItem
  /** The item is tried in place of this one, which was refused too often. */
  refusedHead?: WorkItem
}

interface Done extends Turn {
  name: string
  run: QueueRun
  outcome: Outcome
  attempt: Attempt
  target: Target
}
