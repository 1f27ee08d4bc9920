import t from 'tap'
import type { Metric } from '../../telemetry/make-metric.ts'
import { createMetrics, metricTable } from '../../telemetry/metrics.ts'

const rows = Object.values<Metric>(metricTable)

t.test('Prometheus is told of every metric of the table, and of no other of the hub', async (t) => {
  const text = String(await createMetrics({ livestreamMetrics: true }).exposition())
  const told = [...text.matchAll(/^# HELP (hub_\w+) (.*)\n# TYPE \1 (.*)$/gm)].map(([, ...row]) => row)
  t.strictSame(sorted(told), sorted(rows.map(({ name, help, type }) => [name, help, type])))
})

/*
 * Counters must begin with 0. A counter that first appears with a burst shows Prometheus no growth. Then no alert
 * fires.
 */
t.test('counters with known values of their label begin with 0', async (t) => {
  const text = String(await createMetrics().exposition())
  const labelled = rows.filter(({ type, labels }) => type === 'counter' && labels)
  for (const { name, labels = {} } of labelled)
    for (const [label, values] of Object.entries(labels))
      for (const value of values) t.match(text, `\n${name}{${label}="${value}"} 0\n`)
})

t.test('a metric that the node reads has the value of the moment, and none without a reading', async (t) => {
  const metrics = createMetrics()
  metrics.read({
    feedAge: () => undefined,
    workOldest: async (set) => set(7),
    sessions: (set) => set(3, { state: 'away' }),
  })
  const text = String(await metrics.exposition())
  t.match(text, /^hub_work_oldest_seconds 7$/m)
  t.match(text, /^hub_sessions\{state="away"\} 3$/m)
  t.notMatch(text, /^hub_(feed_age_seconds|feed_ok) /m)
})

t.test('a metric for each livestream is there only if it is asked for', async (t) => {
  t.notMatch(String(await createMetrics().exposition()), /hub_livestream_subscribers/)
})

t.test('the counters of hubctl status have no histograms, and nothing that is costly to read', async (t) => {
  const names = Object.keys(await createMetrics().snapshot()).map((name) => name.replace(/\{.*/, ''))
  const known = new Set(rows.filter(({ isInStatus }) => isInStatus).map(({ name }) => name as string))
  t.ok(names.length > 40 && names.every((name) => known.has(name)))
})

function sorted(rows: readonly (readonly string[])[]): (readonly string[])[] {
  return [...rows].sort(([a = ''], [b = '']) => a.localeCompare(b))
}
