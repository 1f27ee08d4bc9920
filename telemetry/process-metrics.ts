import { collectDefaultMetrics, Registry } from 'prom-client'

/** The registry that several hubs of one process share. */
let registry: Registry | undefined

/** The metrics of the process by prom-client (`process_…`, `nodejs_…`). Collects nothing before the first call. */
export function processMetrics(): Registry {
  if (!registry) {
    registry = new Registry()
    // Measures the event loop with a timer of 100 ms. The default, 10 ms, would be most of the work of an idle node.
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 })
  }
  return registry
}
