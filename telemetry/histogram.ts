import { Histogram, type Registry } from 'prom-client'

/**
 * A Prometheus histogram that makes no objects when it records, unlike that of prom-client. Returns a recording
 * function for each value of the label, in the order of the values; without a label, a single one.
 */
export function createHistogram(
  registry: Registry,
  of: { name: string; help: string; buckets: readonly number[] },
  label?: { name: string; values: readonly string[] },
): ((value: number) => void)[] {
  const { name, help, buckets } = of
  const series = label ? label.values.map((value) => ({ [label.name]: value })) : [{}]
  const all = series.map((labels) => createSeries(name, labels, buckets))
  const exported = async () => ({
    name,
    help,
    type: 'histogram',
    aggregator: 'sum',
    values: all.flatMap((one) => one.values()),
  })
  // prom-client calls `getForPromString` when it writes the text for Prometheus.
  const asKnown = { get: exported, getForPromString: exported }
  registry.registerMetric(Object.assign(new Histogram({ name, help, registers: [] }), asKnown))
  return all.map(({ observe }) => observe)
}

/** The counts for one value of the label. */
function createSeries(name: string, labels: Record<string, string>, buckets: readonly number[]) {
  /** Number of values in each bucket. The last element counts the values above all buckets. */
  const counts = new Float64Array(buckets.length + 1)
  let sum = 0

  return {
    observe(value: number): void {
      let bucket = 0
      while (value > (buckets[bucket] ?? Infinity)) bucket++
      counts[bucket] = (counts[bucket] ?? 0) + 1
      sum += value
    },

    values() {
      let count = 0
      const upTo = [...counts].map((own, bucket) => {
        count += own
        return {
          metricName: `${name}_bucket`,
          labels: { le: buckets[bucket] ?? '+Inf', ...labels },
          value: count,
        }
      })
      return [
        ...upTo,
        { metricName: `${name}_sum`, labels, value: sum },
        { metricName: `${name}_count`, labels, value: count },
      ]
    },
  }
}
