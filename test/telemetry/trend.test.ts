import t from 'tap'
import { createMetrics } from '../../telemetry/metrics.ts'
import { startTrend } from '../../telemetry/trend.ts'

t.test('a sample says what happened in it, and nothing of what was before', async (t) => {
  const metrics = createMetrics()
  const trend = startTrend({ metrics, clock: () => Date.parse('2026-01-31T12:00:00Z') })
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
  const trend = startTrend({ metrics: createMetrics(), clock: () => now++ })
  t.teardown(trend.close)
  for (let taken = 0; taken < 365; taken++) await trend.take()
  t.equal(trend.samples().length * trend.everySeconds, 3_600)
  t.equal(trend.samples()[0]?.at, new Date(5).toISOString(), 'the oldest have gone')
})
