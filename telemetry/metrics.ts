import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { createExposition } from './exposition.ts'
import { createLabelledCounters } from './labelled-counters.ts'
import { createLatency } from './latency.ts'
import { processMetrics } from './process-metrics.ts'

export type Metrics = ReturnType<typeof createMetrics>

/** The metrics of one node. Several nodes in one process have separate registries. */
export function createMetrics() {
  const registry = new Registry()
  /** Histograms of durations and counts by institution, for Prometheus alone: `snapshot` leaves out their many values. */
  const numerous = new Registry()
  /** Values other than counts. The node reads most of them when Prometheus asks. */
  const gauges = new Registry()
  // Not at the first question of Prometheus: what the process did before would be missing in its counters.
  const ofProcess = processMetrics()
  const registers = [registry]
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
    new Counter({ name, help, labelNames, registers })
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers })
  let certificateEnd: (() => Date) | undefined
  new Gauge({
    name: 'hub_certificate_expiry_days',
    help: 'Whole days until the certificate in use expires',
    registers,
    collect() {
      if (certificateEnd) this.set(daysUntil(certificateEnd()))
    },
  })
  const startedAt = performance.now()
  new Gauge({
    name: 'hub_start_time_seconds',
    help: 'When the node started, also again in the same process; seconds since the epoch',
    registers: [gauges],
  }).set(Date.now() / 1000)
  const budgetExceeded = counter('hub_budget_exceeded_total', 'Events that took longer than 220 ms')

  return {
    registry,
    gauges,
    /** How long recent events took, and how many clients got them. */
    latency: createLatency({ histograms: numerous, exceeded: budgetExceeded }),
    ...createLabelledCounters(registry),
    eventErrors: counter('hub_event_errors_total', 'Reasons given in feedback', ['code']),
    eventWarnings: new Counter({
      name: 'hub_event_warnings_total',
      help: 'Warnings about published events',
      labelNames: ['institution', 'code'],
      registers: [numerous],
    }),
    subscriptionsDenied: counter('hub_subscriptions_denied_total', 'Topic filters answered with 0x80'),
    connections: gauge('hub_connections', 'Open MQTT connections'),
    budgetExceeded,
    deliveries: counter('hub_deliveries_total', 'Messages written to subscribers'),
    httpsRequests: counter('hub_https_requests_total', 'HTTPS requests answered', ['route', 'status']),
    workSeconds: new Histogram({
      name: 'hub_work_attempt_seconds',
      help: 'Time until a webhook or plugin target had answered',
      buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20],
      registers: [numerous],
    }),
    workDropped: counter('hub_work_dropped_total', 'Work lost to the limit of a queue'),
    queuesStuck: counter('hub_queues_stuck_total', 'Queues that stood still for 30 s and were picked up'),
    storeFailures: counter('hub_store_failures_total', 'Commits the store refused'),

    /** Seconds since the node started. The process may be older. */
    uptime: (): number => (performance.now() - startedAt) / 1000,

    /** Sets where `hub_certificate_expiry_days` comes from. Each reading of the gauge calls `end`. */
    watchCertificate(end: () => Date): void {
      certificateEnd = end
    },

    /** All metrics, including those of the process, in the text format of Prometheus. */
    exposition: createExposition([registry, numerous, gauges, ofProcess]),

    /** Counters as plain numbers, for `hubctl status`: `{ "hub_events_total{outcome=published}": 3 }`. */
    async snapshot(): Promise<Record<string, number>> {
      const values: Record<string, number> = {}
      for (const metric of await registry.getMetricsAsJSON()) {
        for (const { labels, value } of metric.values) {
          const suffix = Object.entries(labels).map(([name, label]) => `${name}=${label}`)
          values[suffix.length > 0 ? `${metric.name}{${suffix.join()}}` : metric.name] = value
        }
      }
      return values
    },
  }
}

/** Whole days until a date. Negative if the date has passed. */
export function daysUntil(date: Date): number {
  return Math.floor((date.getTime() - Date.now()) / (24 * 3600 * 1000))
}
