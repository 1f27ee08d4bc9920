import { collectDefaultMetrics, Registry } from 'prom-client'

/**
 * Interval of the timer that measures the lag of the event loop, milliseconds. The measured lag includes the interval:
 * the dashboard of `deploy/` subtracts it. The default of 10 ms would be most of the work of an idle node.
 */
export const eventLoopTimerMs = 100

/** The registry that several hubs of one process share. */
let registry: Registry | undefined

/** The metrics of the process by prom-client (`process_…`, `nodejs_…`). Collects nothing before the first call. */
export function processMetrics(): Registry {
  if (!registry) {
    registry = new Registry()
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: eventLoopTimerMs })
  }
  return registry
}
