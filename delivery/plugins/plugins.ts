import type { Log } from '../../telemetry/log.ts'
import type { WorkItem } from '../queue/work-item.ts'
import { mostLanes, type Target } from '../target.ts'
import type { HubDriver, PluginItem } from './driver.ts'
import type { DriverProcess, DriverState } from './driver-process.ts'
import { type PluginTarget, queueOf } from './targets.ts'

/** The plugin targets of the configuration, each with its queue and its driver. */
export function createPlugins(parts: {
  targets: readonly PluginTarget[]
  driverOf: (target: PluginTarget, log: Log) => HubDriver | DriverProcess
  log: Log
}) {
  const { targets, driverOf, log } = parts
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
          driver.deliver(toPluginItem(queue, item, payload), {
            messageId: item.messageId,
            attempt: item.tries + 1,
            signal,
          }),
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

    /** Closes the drivers that have processes. Never rejects. */
    async close(): Promise<void> {
      const closing = [...drivers].map(async ([queue, driver]) => {
        if (!('close' in driver)) return
        await driver.close().catch((err: unknown) => log.error({ err, queue }, 'plugin driver not closed'))
      })
      await Promise.all(closing)
    },
  }
}

/** Undefined: the driver is a part of the hub. */
function stateOf(driver: HubDriver | DriverProcess): DriverState | undefined {
  return 'state' in driver ? driver.state() : undefined
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
