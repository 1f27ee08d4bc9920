import { Counter, collectDefaultMetrics, Registry } from 'prom-client'

/**
 * Interval of the timer that measures the lag of the event loop, milliseconds. The measured lag includes the interval:
 * the dashboard of `deploy/` subtracts it. The default of 10 ms would be most of the work of an idle node.
 */
export const eventLoopTimerMs = 100

/** The registry that several hubs of one process share. */
let registry: Registry | undefined

/**
 * The metrics of the process by prom-client (`process_…`, `nodejs_…`). They begin with the first call, but for the
 * seconds of the processor: these count from the start of the process.
 */
export function processMetrics(): Registry {
  if (!registry) {
    registry = new Registry()
    const { user, system } = process.cpuUsage()
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: eventLoopTimerMs })
    // prom-client begins these counters with 0.
    const spent = { user, system, '': user + system }
    for (const [kind, microseconds] of Object.entries(spent)) {
      const counter = registry.getSingleMetric(`process_cpu_${kind}${kind && '_'}seconds_total`)
      if (counter instanceof Counter) counter.inc(microseconds / 1e6)
    }
  }
  return registry
}
