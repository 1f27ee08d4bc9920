import { collectDefaultMetrics, Registry } from 'prom-client'

/** Several hubs of one process share it. */
let registry: Registry | undefined

/** The metrics of the process that prom-client knows (`process_…`, `nodejs_…`). Nothing is collected before the first call. */
export function processMetrics(): Registry {
  if (!registry) {
    registry = new Registry()
    // A timer of 10 ms, the default, would be most of what an idle node does.
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 })
  }
  return registry
}
