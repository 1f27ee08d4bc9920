import { Counter, Gauge, type Registry } from 'prom-client'
import { createHistogram } from './histogram.ts'

/** A metric of the hub. docs/reference/metrics.md is made of it. */
export interface Metric {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly name: `hub_${string}`
  /** One line of `/metrics`. */
  readonly help: string
  /** The values of each label. None: they are not known before something happens. */
  readonly labels?: Readonly<Record<string, readonly string[]>>
  /** Upper bounds of a histogram, seconds. */
  readonly buckets?: readonly number[]
  /** A gauge that the node reads when Prometheus asks: see `Readings`. */
  readonly isRead?: true
  /** How the values of several workers become one. Absent: they add up. */
  readonly together?: 'min' | 'max' | 'first'
  /** Among `counters` of `hubctl status`: neither many values nor costly. */
  readonly isInStatus?: true
  /** There only if this setting is true. */
  readonly onlyWith?: 'livestreamMetrics'
  /** What it counts or measures: Markdown in one line, links from `docs/`. */
  readonly does: string
  /** What an operator does about it, in the same form. */
  readonly act?: string
}

export interface Observed {
  observe(value: number): void
}

/**
 * Makes a counter, gauge or histogram, and registers it. A histogram with a label is an object with one `Observed` for
 * each value.
 */
export function makeMetric(
  metric: Metric,
  registry: Registry,
): Counter | Gauge | Observed | Record<string, Observed> {
  if (metric.type === 'counter') return makeCounter(metric, registry)
  const { name, help, labels = {}, buckets = [] } = metric
  if (metric.type === 'gauge') {
    return new Gauge({ name, help, labelNames: Object.keys(labels), registers: [registry] })
  }
  const [label] = Object.entries(labels).map(([name, values]) => ({ name, values }))
  const observed = createHistogram(registry, { name, help, buckets }, label).map((observe) => ({ observe }))
  const [first = { observe: () => undefined }] = observed
  if (!label) return first
  return Object.fromEntries(label.values.map((value, index) => [value, observed[index] ?? first]))
}

/** Registers a gauge that is read when Prometheus asks. */
export function makeReading(
  { name, help, labels = {}, together }: Metric,
  registry: Registry,
  reading: () =>
    | ((set: (value: number, labels?: Record<string, string | number>) => void) => unknown)
    | undefined,
): void {
  new Gauge({
    name,
    help,
    labelNames: Object.keys(labels),
    registers: [registry],
    aggregator: together ?? 'sum',
    async collect() {
      // If reading fails, the gauge has no value: an old value would mislead.
      this.reset()
      this.remove({})
      await reading()?.((value, of = {}) => this.set(of, value))
    },
  })
}

/**
 * Each known value of a label begins with 0. If a burst began a series, Prometheus would see no growth, and no alert
 * would fire.
 */
function makeCounter({ name, help, labels = {} }: Metric, registry: Registry): Counter {
  const counter = new Counter({ name, help, labelNames: Object.keys(labels), registers: [registry] })
  const [values = [], ...further] = Object.values(labels)
  if (further.length === 0) for (const value of values) counter.labels(value).inc(0)
  return counter
}
