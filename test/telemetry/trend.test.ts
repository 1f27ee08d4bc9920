import t from 'tap'
import { createFigures } from '../../telemetry/figures.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { startTrend, trendSeconds } from '../../telemetry/trend.ts'

t.test('a sample says what happened in it, and nothing of what was before', async (t) => {
  const metrics = createMetrics()
  const figures = createFigures('node', metrics)
  const clock = () => Date.parse('2026-01-31T12:00:00Z')
  const trend = startTrend({ figures: async () => [await figures()], clock })
  t.teardown(trend.close)
  t.same(trend.samples(), [])
  metrics.events.inc({ outcome: 'published' }, 3)
  metrics.events.inc({ outcome: 'blocked' })
  metrics.deliveries.inc(40)
  metrics.connections.set(7)
  for (const ms of [1, 2, 300]) metrics.latency.record(ms)
  await trend.take()
  metrics.events.inc({ outcome: 'published' })
  metrics.connections.set(6)
  metrics.latency.record(5)
  await trend.take()
  await trend.take()
  t.match(trend.samples(), [
    {
      at: '2026-01-31T12:00:00.000Z',
      events: { published: 3, blocked: 1 },
      deliveries: 40,
      connections: 7,
      p50: 2,
      p99: 300,
      exceeded: 1,
    },
    { events: { published: 1, blocked: 0 }, deliveries: 0, connections: 6, p50: 5, p99: 5, exceeded: 0 },
    { events: { published: 0, blocked: 0 }, p50: null, p99: null, exceeded: 0 },
  ])
})

t.test('it keeps the last hour', async (t) => {
  let now = 0
  const trend = startTrend({ figures: async () => [], clock: () => now++ })
  t.teardown(trend.close)
  for (let taken = 0; taken < 365; taken++) await trend.take()
  t.equal(trend.samples().length * trendSeconds, 3_600)
  t.equal(trend.samples()[0]?.at, new Date(5).toISOString(), 'the oldest have gone')
})

t.test('the processes of a hub are one', async (t) => {
  const workers = new Map([1, 2].map((number) => [number, createMetrics()]))
  const read = async () =>
    Promise.all([...workers].map(([number, metrics]) => createFigures(`worker ${number}`, metrics)()))
  const trend = startTrend({ figures: read, clock: Date.now })
  t.teardown(trend.close)
  for (const [number, metrics] of workers) {
    metrics.events.inc({ outcome: 'published' }, number)
    metrics.deliveries.inc(10 * number)
    metrics.connections.set(number)
    for (let ms = 1; ms <= 5_000; ms++) metrics.latency.record(number)
  }
  await trend.take()
  t.match(trend.samples().at(-1), {
    events: { published: 3 },
    deliveries: 30,
    connections: 3,
    p50: 1,
    p99: 2,
  })

  // One does not answer in time: what it counts meanwhile is in the next sample, and nothing is counted twice.
  const [, silent] = workers
  workers.delete(2)
  silent?.[1].events.inc({ outcome: 'published' })
  workers.get(1)?.latency.record(7)
  await trend.take()
  t.match(trend.samples().at(-1), { events: { published: 0 }, deliveries: 0, connections: 1, p50: 7, p99: 7 })
  if (silent) workers.set(...silent)
  await trend.take()
  t.match(trend.samples().at(-1), { events: { published: 1 }, deliveries: 0, connections: 3, p50: null })

  // One died, and another one took its place.
  const successor = createMetrics()
  successor.events.inc({ outcome: 'published' }, 5)
  workers.set(2, successor)
  await trend.take()
  t.match(trend.samples().at(-1), { events: { published: 5 }, connections: 1 })
})
