import type { Metric } from '../telemetry/make-metric.ts'
import { metricTable } from '../telemetry/metrics.ts'
import { code, type ReferencePage, table } from './page.ts'

/** All metrics of a node. */
export function metricsPage(): ReferencePage {
  const rows = Object.values<Metric>(metricTable).map(
    ({ type, name, labels = {}, buckets, does, act = '' }) => {
      const measured = buckets ? `${does}. Buckets: ${buckets.join(', ')}` : does
      return [code(name), type, Object.entries(labels).map(labelOf).join('; '), measured, act]
    },
  )
  const ofProcess = [
    code('process_…', 'nodejs_…'),
    '',
    '',
    'processor time, memory, open files and event loop of the process, from the first scrape on. `nodejs_eventloop_lag_p99_seconds` contains the 100 ms of the timer that measures it, as do `p50`, `p90`, `mean`, `min` and `max`',
    '',
  ]
  const inStatus = Object.values<Metric>(metricTable).filter(({ isInStatus }) => isInStatus)
  return {
    name: 'metrics',
    title: 'Metrics',
    about: 'What a node tells Prometheus at `/metrics`.',
    text: `[How to watch a node](operators.md#watching-a-node), with alerts and a dashboard.

${table(['metric', 'type', 'labels', '', 'what to do'], [...rows, ofProcess])}

A counter begins with 0 for each value of its label that stands here. \`counters\` of \`hubctl status\` has
${code(...inStatus.map(({ name }) => name))}.`,
  }
}

function labelOf([label, values]: [string, readonly string[]]): string {
  return values.length === 0 ? code(label) : `${code(label)}: ${code(...values)}`
}
