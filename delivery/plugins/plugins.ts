import { cut } from '../../event/cut.ts'
import type { Log } from '../../telemetry/log.ts'
import type { WorkItem } from '../queue/work-item.ts'
import type { Outcome, Target } from '../target.ts'
import type { CreateDriver, PluginDriver, PluginItem } from './driver.ts'
import { type PluginTarget, queueOf } from './targets.ts'

/** Longest time of one attempt, milliseconds. */
export const attemptMs = 20_000
/** Longest time that the hub waits for a driver to close, milliseconds. */
const closeMs = 2_000
/** Longest reason of a failed attempt, characters. The rest is cut off. */
const maxReason = 200

/** The plugin targets of the configuration, each with its queue and its driver. */
export async function createPlugins(parts: {
  targets: readonly PluginTarget[]
  driverOf: (target: PluginTarget) => Promise<CreateDriver>
  /** Longest time of one attempt, milliseconds. */
  deadlineMs?: number
  log: Log
}) {
  const { targets, driverOf, deadlineMs = attemptMs, log } = parts
  const drivers = new Map<string, PluginDriver>()
  for (const target of targets) {
    const create = await driverOf(target)
    drivers.set(queueOf(target.type), await create(target, { log: log.child({ plugin: target.type }) }))
  }

  return {
    queues: targets.map((target) => ({ name: queueOf(target.type), target })),

    /** The queue of an action: `plugins.dts` for `plugins.dts.event`. Undefined: there is no such target. */
    queueOfAction(action: string): string | undefined {
      const queue = action.replace(/\.event$/, '')
      return queue !== action && drivers.has(queue) ? queue : undefined
    },

    /** Undefined: the target is no longer configured, and the items wait. */
    targetOf(queue: string): Target | undefined {
      const driver = drivers.get(queue)
      if (!driver) return undefined
      return {
        endpoint: queue,
        owner: queue,
        deliver: (item, payload, signal) =>
          attempt(driver, toPluginItem(queue, item, payload), item, signal, deadlineMs),
      }
    },

    /** Closes the drivers. Never rejects, and waits for `closeMs` at most. */
    async close(): Promise<void> {
      const closing = [...drivers].map(([queue, driver]) =>
        close(driver).catch((err: unknown) => log.error({ err, queue }, 'plugin driver not closed')),
      )
      await Promise.all(closing)
    },
  }
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

/** Makes one attempt. Resolves at the deadline at the latest, whatever the driver of a third party does. */
async function attempt(
  driver: PluginDriver,
  pluginItem: PluginItem,
  { messageId, tries }: WorkItem,
  stopping: AbortSignal,
  deadlineMs: number,
): Promise<Outcome> {
  if (stopping.aborted) return failed('the hub is stopping')
  const ending = new AbortController()
  const { signal } = ending
  const stop = () => ending.abort(new Error('the hub is stopping'))
  const late = setTimeout(
    () => ending.abort(new Error(`no answer within ${deadlineMs / 1000} s`)),
    deadlineMs,
  )
  stopping.addEventListener('abort', stop, { once: true })
  // An async function turns an exception that the driver throws synchronously into a rejection.
  const deliver = async () => driver.deliver(pluginItem, { messageId, attempt: tries + 1, signal })
  try {
    return readOutcome(await Promise.race([deliver(), whenAborted(signal)]))
  } catch (error) {
    return failed(error instanceof Error ? error.message : String(error))
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

function readOutcome(returned: unknown): Outcome {
  const { result, status, reason, retryAfterMs } = Object(returned ?? {})
  const code = Number.isInteger(status) ? status : null
  if (returned === undefined || result === 'acknowledged') {
    return { result: 'acknowledged', status: code, reason: null }
  }
  if (result !== 'refused' && result !== 'failed' && result !== 'gone') {
    return failed('the driver returned something that is no outcome')
  }
  return {
    ...{ result, status: code, reason: cut(String(reason ?? result), maxReason) },
    ...(Number.isFinite(retryAfterMs) && { retryAfterMs }),
  }
}

function failed(reason: string): Outcome {
  return { result: 'failed', status: null, reason: cut(reason, maxReason) }
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
