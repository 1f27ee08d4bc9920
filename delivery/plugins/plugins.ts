import type { Log } from '../../telemetry/log.ts'
import type { WorkItem } from '../queue/work-item.ts'
import type { AttemptOutcome, Target } from '../target.ts'
import { mostLanes } from '../target.ts'
import type { PluginDriver, PluginItem } from './driver.ts'
import type { DriverProcess, DriverState } from './driver-process.ts'
import { failed, failedBy, readOutcome } from './outcome.ts'
import { type PluginTarget, queueOf } from './targets.ts'

/** Longest time of one attempt, milliseconds. */
export const attemptMs = 20_000
/** Longest time that the hub waits for a driver to close, milliseconds. */
const closeMs = 2_000

/** The plugin targets of the configuration, each with its queue and its driver. */
export function createPlugins(parts: {
  targets: readonly PluginTarget[]
  driverOf: (target: PluginTarget, log: Log) => PluginDriver | DriverProcess
  /** Longest time of one attempt, milliseconds. */
  deadlineMs?: number
  log: Log
}) {
  const { targets, driverOf, deadlineMs = attemptMs, log } = parts
  const targetByQueue = new Map(targets.map((target) => [queueOf(target.type), target]))
  const drivers = new Map(
    targets.map((target) => [queueOf(target.type), driverOf(target, log.child({ plugin: target.type }))]),
  )

  return {
    queues: targets.map((target) => ({ name: queueOf(target.type), target })),

    /** The queue of an action: `plugins.dts` for `plugins.dts.event`. Undefined: there is no such target. */
    queueOfAction(action: string): string | undefined {
      const queue = action.replace(/\.event$/, '')
      return queue !== action && drivers.has(queue) ? queue : undefined
    },

    /** Undefined: the target is no longer configured, or its driver does not run. The items wait. */
    targetOf(queue: string): Target | undefined {
      const driver = drivers.get(queue)
      const { maxAge, delay } = targetByQueue.get(queue) ?? {}
      if (!driver || (stateOf(driver)?.state ?? 'running') !== 'running') return undefined
      return {
        endpoint: queue,
        owner: queue,
        isOwnDriver: stateOf(driver) !== undefined,
        lanes: mostLanes,
        ...(maxAge !== undefined && { maxAge }),
        ...(delay !== undefined && { delayMs: delay }),
        deliver: (item, payload, signal) =>
          attempt(driver, toPluginItem(queue, item, payload), item, signal, deadlineMs),
      }
    },

    /**
     * Starts the drivers that have processes. Calls `changed` each time when one of them can deliver, and when it ended
     * before that.
     */
    start(changed: (queue: string, isReady: boolean) => void): void {
      for (const [queue, driver] of drivers)
        if ('start' in driver) driver.start((isReady) => changed(queue, isReady))
    },

    /** The drivers that have processes, by their queues. */
    states: (): [queue: string, state: DriverState][] =>
      [...drivers].flatMap(([queue, driver]) => {
        const state = stateOf(driver)
        return state ? [[queue, state]] : []
      }),

    /** Closes the drivers. Never rejects, and waits for `closeMs` at most. */
    async close(): Promise<void> {
      const closing = [...drivers].map(([queue, driver]) =>
        close(driver).catch((err: unknown) => log.error({ err, queue }, 'plugin driver not closed')),
      )
      await Promise.all(closing)
    },
  }
}

/** Undefined: the driver is a part of the hub. */
function stateOf(driver: PluginDriver | DriverProcess): DriverState | undefined {
  return 'state' in driver ? driver.state() : undefined
}

async function close(driver: PluginDriver): Promise<void> {
  const ending = new AbortController()
  const late = setTimeout(() => ending.abort(new Error('not closed in time')), closeMs)
  // An async function turns an exception that the driver throws synchronously into a rejection.
  const closed = async () => driver.close?.()
  try {
    await Promise.race([closed(), whenAborted(ending.signal)])
  } finally {
    clearTimeout(late)
  }
}

/**
 * Makes one attempt. Resolves at the deadline, whatever the driver of a third party does. A driver in a process of its
 * own has a moment more: then its process ends, and that outcome blames the item, so that the item can step aside.
 */
async function attempt(
  driver: PluginDriver,
  pluginItem: PluginItem,
  { messageId, tries }: WorkItem,
  stopping: AbortSignal,
  deadlineMs: number,
): Promise<AttemptOutcome> {
  if (stopping.aborted) return failed('the hub is stopping')
  const ending = new AbortController()
  const { signal } = ending
  /** Aborts when the hub waits for the driver no longer. */
  const over = new AbortController()
  const stop = () => {
    const reason = new Error('the hub is stopping')
    ending.abort(reason)
    over.abort(reason)
  }
  const late = setTimeout(() => {
    const reason = new Error(`no answer within ${deadlineMs / 1000} s`)
    ending.abort(reason)
    if (stateOf(driver) === undefined) over.abort(reason)
  }, deadlineMs)
  stopping.addEventListener('abort', stop, { once: true })
  // An async function turns an exception that the driver throws synchronously into a rejection.
  const deliver = async () => driver.deliver(pluginItem, { messageId, attempt: tries + 1, signal })
  try {
    return readOutcome(await Promise.race([deliver(), whenAborted(over.signal)]))
  } catch (error) {
    return failedBy(error)
  } finally {
    clearTimeout(late)
    stopping.removeEventListener('abort', stop)
  }
}

/** Rejects when the signal aborts. */
function whenAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

function toPluginItem(queue: string, item: WorkItem, payload: Buffer): PluginItem {
  const { plugin, institutionId } = item.details
  return {
    action: `${queue}.event`,
    event: JSON.parse(payload.toString()),
    plugin: { ...Object(plugin) },
    institutionId: String(institutionId),
  }
}
