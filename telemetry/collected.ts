import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue, type Registry } from 'prom-client'

/** Metrics with their values, as prom-client hands them from process to process. */
export type CollectedMetrics = MetricObjectWithValues<MetricValue<string>>[]

/** The metrics of one process. `run`: another one where its counters have begun anew. */
export interface Collected {
  run: string
  metrics: CollectedMetrics
}

/** Makes one registry of the metrics of several processes. A metric says how its values become one: they add up if not. */
export function together(each: readonly CollectedMetrics[]): Registry {
  return AggregatorRegistry.aggregate([...each])
}

/**
 * Adds up the metrics of several processes. What a process counted before it began anew stays in the sum: for Prometheus,
 * a sum that falls is a counter that has begun anew, and its whole value a growth.
 */
export function createCollection() {
  const latest = new Map<number, Collected>()
  let former: CollectedMetrics = []

  return {
    /** Takes the metrics of a process, which has this number. */
    async take(number: number, collected: Collected): Promise<void> {
      const before = latest.get(number)
      latest.set(number, collected)
      if (before === undefined || before.run === collected.run) return
      const counted = before.metrics.filter(({ type }) => growing.includes(String(type)))
      former = await together([former, counted]).getMetricsAsJSON()
    },

    /** All metrics. Of a process that was not taken lately, its last ones. */
    all: (): Promise<CollectedMetrics> =>
      together([...[...latest.values()].map(({ metrics }) => metrics), former]).getMetricsAsJSON(),
  }
}

const growing = ['counter', 'histogram']
