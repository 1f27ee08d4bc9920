import { setMaxListeners } from 'node:events'
import { createRunningWork } from '../../store/running-work.ts'
import { isClosed } from '../target.ts'
import { createQueueRun, nextItem, probe, type QueueRun, type QueueRunState, runState } from './queue-run.ts'
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
 * Works off all queues in parallel, and the items of a queue one by one in order. A queue whose endpoint fails pauses,
 * longer each time.
 */
export function createRunner(parts: Omit<Parameters<typeof createWorkOff>[0], 'stopping' | 'cutting'>) {
  const { queues, leases, targetOf, waitOf, clock, log } = parts
  const runs = new Map<string, QueueRun>()
  const running = createRunningWork()
  const stopping = new AbortController()
  const cutting = new AbortController()
  // Every attempt listens to these signals. With its usual limit of listeners, Node would warn of a leak.
  setMaxListeners(0, stopping.signal, cutting.signal)
  const workOff = createWorkOff({ ...parts, stopping: stopping.signal, cutting: cutting.signal })
  let tidying: NodeJS.Timeout | undefined

  return {
    start(): void {
      queues.onAppended(wake)
      leases.onFreed(wake, wakeAll)
      wakeAll()
      tidying = setInterval(tidy, tidyMs).unref()
      tidy()
    },

    /** Ends the pause of a queue, and tries the queue now. */
    retryNow(name: string): void {
      const run = runOf(name)
      Object.assign(run, { notBefore: 0, retryAsked: run.current !== undefined })
      wake(name)
    },

    /** Looks at a queue again, because its target can deliver now. */
    wake,

    /** Looks at every queue again, because targets may have changed. */
    wakeAll,

    stateOf,

    /** The states of the queues that this node works off. Queues without items can be missing. */
    states: (): [queue: string, state: QueueRunState][] =>
      [...runs.keys()].filter(leases.isOwn).map((name) => [name, stateOf(name)]),

    /** The queues that this node could work off now, but does not: see `watchStuckQueues`. */
    stuckQueues: (): string[] =>
      queues.names().filter((name) => {
        if (!leases.isOwn(name) || runs.get(name)?.running) return false
        const target = targetOf(name)
        return (
          target !== undefined &&
          target !== 'gone' &&
          'item' in
            nextItem(runs.get(name) ?? createQueueRun(), queues.waiting(name), clock(), (item) =>
              isClosed(target) ? 0 : waitOf(item, target),
            )
        )
      }),

    /** Starts no more deliveries. Resolves when all have ended. After `stopMs`, cuts those under way short. */
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
    return runState(runs.get(name), queues.waiting(name), clock())
  }

  function wakeAll(): void {
    for (const name of queues.names()) wake(name)
  }

  function wake(name: string): void {
    const run = runOf(name)
    if (run.probeOnArrival && queues.waiting(name).second) probe(run)
    run.isWoken = true
    if (run.running || stopping.signal.aborted) return
    clearTimeout(run.timer)
    run.running = true
    running.add(begin(name, run))
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
      if (isForgettable(name, run)) runs.delete(name)
    }
  }

  function wakeAt(at: number | undefined, name: string, run: QueueRun): void {
    if (at === undefined || stopping.signal.aborted) return
    clearTimeout(run.timer)
    run.timer = setTimeout(() => wake(name), Math.max(1, at - clock()))
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
    const run = runs.get(name) ?? createQueueRun()
    runs.set(name, run)
    return run
  }

  function isForgettable(name: string, run: QueueRun): boolean {
    const isSettled = run.failures === 0 || targetOf(name) === 'gone'
    return isSettled && queues.lengthOf(name).pending === 0
  }
}
