import { setMaxListeners } from 'node:events'
import { createRunningWork } from '../../store/running-work.ts'
import { laneOf } from '../queue/lane-of.ts'
import type { Waiting } from '../queue/queue.ts'
import type { WorkItem } from '../queue/work-item.ts'
import { isClosed, type OwnedEndpoint, type Target } from '../target.ts'
import { nextItem, probe, type QueueRun, type QueueRunState, runState, stateOfLanes } from './queue-run.ts'
import { createRuns, whole } from './runs.ts'
import { createWorkOff } from './work-off.ts'

const tidyMs = 60_000
/** Pause of a queue after the store failed, milliseconds. */
const storeRetryMs = 1_000
/**
 * When the hub stops, deliveries have this long to end, milliseconds. Longer ones are cut short, and repeated after the
 * next start.
 */
const stopMs = 5_000

/**
 * Works off all queues in parallel, and the items of a queue one by one in order. A target may have lanes: then each lane
 * of its queue is worked off like a queue of its own. A queue or lane whose endpoint fails pauses, longer each time.
 */
export function createRunner(
  parts: Omit<
    Parameters<typeof createWorkOff>[0],
    'stopping' | 'cutting' | 'runs' | 'ended' | 'recovered' | 'waitingOf'
  > & {
    /** Called when an endpoint answers again, whose events are not worth delivering for long. */
    onRecovered: (of: OwnedEndpoint) => void
  },
) {
  const { queues, leases, targetOf, waitOf, onRecovered, clock, log } = parts
  const runs = createRuns()
  const running = createRunningWork()
  const stopping = new AbortController()
  let cutting = newCutting()
  // Every attempt listens to this signal. With its usual limit of listeners, Node would warn of a leak.
  setMaxListeners(0, stopping.signal)
  const workOff = createWorkOff({
    ...parts,
    runs,
    waitingOf,
    ended,
    recovered,
    stopping: stopping.signal,
    cutting: () => cutting.signal,
  })
  let tidying: NodeJS.Timeout | undefined

  return {
    start(): void {
      queues.onAppended(wake)
      leases.onFreed((name) => wake(name), wakeAll)
      // Another node soon delivers what this one is delivering.
      leases.onLostTouch(() => {
        cutting.abort()
        cutting = newCutting()
      })
      wakeAll()
      tidying = setInterval(tidy, tidyMs).unref()
      tidy()
    },

    /** Ends the pause of a queue, and tries the queue now. */
    retryNow(name: string): void {
      for (const run of runs.of(name))
        Object.assign(run, { notBefore: 0, retryAsked: run.current !== undefined })
      wake(name)
    },

    /** Ends the pauses of queues whose events are not worth delivering for long: their endpoint answers again. */
    endPauses,

    /** Looks at a queue again, because its target can deliver now. */
    wake: (name: string): void => wake(name),

    /** Looks at every queue again, because targets may have changed. */
    wakeAll,

    stateOf,

    /** The states of the queues that this node works off. Queues without items can be missing. */
    states: (): [queue: string, state: QueueRunState][] =>
      runs
        .queues()
        .filter(leases.isOwn)
        .map((name) => [name, stateOf(name)]),

    /** The queues that this node could work off now, but does not: see `watchStuckQueues`. */
    stuckQueues: (): string[] =>
      queues.names().filter((name) => {
        if (!leases.isOwn(name) || runs.of(name).some((run) => run.running)) return false
        const target = targetOf(name)
        if (target === undefined || target === 'gone') return false
        const wait = (item: WorkItem) => (isClosed(target) ? 0 : waitOf(item, target))
        return lanesOf(name).some((lane) => {
          const run = runs.peek(name, lane)
          return 'item' in nextItem(run, waitingOf(name, run), clock(), wait)
        })
      }),

    /** Starts no more deliveries. Resolves when all have ended. After `stopMs`, cuts those under way short. */
    async stop(): Promise<void> {
      stopping.abort()
      clearInterval(tidying)
      for (const name of runs.queues()) for (const run of runs.of(name)) clearTimeout(run.timer)
      const force = setTimeout(() => cutting.abort(), stopMs)
      await running.ended()
      clearTimeout(force)
    },
  }

  function stateOf(name: string): QueueRunState {
    return stateOfLanes(
      lanesOf(name).map((lane) => {
        const run = runs.peek(name, lane)
        return runState(run, waitingOf(name, run), clock())
      }),
    )
  }

  function wakeAll(): void {
    for (const name of queues.names()) wake(name)
  }

  /** Looks at a queue, or at the lane of a new item. */
  function wake(name: string, item?: WorkItem): void {
    const target = targetOf(name)
    // Of a thousand paused webhooks, none may cost anything for each event. Who ends the pause wakes the queue.
    if (item && target === undefined) return
    const lanes = item && isInLanes(name, target) ? [laneOf(item)] : lanesOf(name, target)
    for (const lane of lanes) wakeRun(name, runs.get(name, lane))
  }

  /** The lanes of a queue with items. A queue whose target has no lanes is worked off as a whole. */
  function lanesOf(name: string, target = targetOf(name)): string[] {
    const lanes = isInLanes(name, target) ? [...queues.lanes(name)] : []
    return lanes.length > 0 ? lanes : [whole]
  }

  function isInLanes(name: string, target: ReturnType<typeof targetOf>): boolean {
    return isOpen(target) && target.lanes !== undefined && leases.isOwn(name)
  }

  function waitingOf(name: string, { lane }: Pick<QueueRun, 'lane'>): Waiting & { isBlocked?: boolean } {
    const waiting = lane === whole ? queues.waiting(name) : queues.waitingInLane(name, lane)
    const target = targetOf(name)
    const { head } = waiting
    if (!head || !isOpen(target) || waitOf(head, target) === 0) return waiting
    // What a person asked for is exempt from the delay of what stands before it (deliveries.md, "Worth").
    const asked = queues
      .items(name)
      .find((item) => isAsked(item) && (lane === whole || laneOf(item) === lane))
    return asked ? { ...waiting, head: asked, second: undefined, isBlocked: false } : waiting
  }

  function wakeRun(name: string, run: QueueRun): void {
    if (run.probeOnArrival && waitingOf(name, run).second) probe(run)
    run.isWoken = true
    if (run.running || stopping.signal.aborted) return
    clearTimeout(run.timer)
    run.running = true
    running.add(begin(name, run))
  }

  /** A delivery has ended: lanes that waited for it, or for a place, go on. Who has waited longest is the first. */
  function ended(name: string): void {
    const waiting = runs.of(name).filter((run) => run.waitingSince !== undefined)
    for (const run of waiting.sort((a, b) => (a.waitingSince ?? 0) - (b.waitingSince ?? 0)))
      wakeRun(name, run)
  }

  /**
   * An endpoint answers again. Queues whose events are not worth delivering for long try it too: what plays now must not
   * wait for the end of a pause. The slow start keeps the endpoint from a flood.
   */
  function recovered({ endpoint, owner, maxAge }: Target): void {
    if (maxAge === undefined) return
    endPauses({ endpoint, owner })
    onRecovered({ endpoint, owner })
  }

  function endPauses({ endpoint, owner }: OwnedEndpoint): void {
    for (const name of runs.queues()) {
      const paused = runs.of(name).filter(({ notBefore }) => notBefore > clock())
      if (paused.length === 0) continue
      const target = targetOf(name)
      if (!isOpen(target) || target.maxAge === undefined) continue
      if (target.endpoint !== endpoint || target.owner !== owner) continue
      for (const run of paused) {
        run.notBefore = 0
        wakeRun(name, run)
      }
    }
  }

  /** Works a queue off, and sets a timer for items that have to wait. Never rejects. */
  async function begin(name: string, run: QueueRun): Promise<void> {
    try {
      while (run.isWoken) {
        run.isWoken = false
        wakeAt(await workOff(name, run), name, run)
      }
    } catch (err) {
      if (stopping.signal.aborted) return
      log.error({ err, queue: name }, 'queue stopped for a moment')
      wakeAt(clock() + storeRetryMs, name, run)
    } finally {
      run.running = false
      if (isForgettable(name, run)) runs.forget(name, run)
    }
  }

  function wakeAt(at: number | undefined, name: string, run: QueueRun): void {
    if (at === undefined || stopping.signal.aborted) return
    clearTimeout(run.timer)
    run.timer = setTimeout(() => wakeRun(name, run), Math.max(1, at - clock()))
  }

  function tidy(): void {
    queues
      .tidy(runs.isUnderWay, (name) => isClosed(targetOf(name)))
      // A lane may have waited for an item that is gone now.
      .then(() => runs.queues().forEach(ended))
      .catch((err: unknown) => log.error({ err }, 'queues not tidied'))
  }

  function isForgettable(name: string, run: QueueRun): boolean {
    const isSettled = run.failures === 0 || targetOf(name) === 'gone'
    const { head, aside, isBlocked = false } = waitingOf(name, run)
    return isSettled && !head && !aside && !isBlocked
  }
}

/** Whether a person asked for an item, which has not been set aside. */
function isAsked({ acceptedAt, asideUntil }: WorkItem): boolean {
  return acceptedAt !== undefined && asideUntil === undefined
}

function newCutting(): AbortController {
  const cutting = new AbortController()
  setMaxListeners(0, cutting.signal)
  return cutting
}

function isOpen(target: ReturnType<Parameters<typeof createWorkOff>[0]['targetOf']>): target is Target {
  return typeof target === 'object' && !isClosed(target)
}
