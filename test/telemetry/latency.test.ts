import { mock } from 'node:test'
import t from 'tap'
import { budgetMs, createPercentiles, type Latency, percentile } from '../../telemetry/latency.ts'
import { createMetrics } from '../../telemetry/metrics.ts'

const at = Date.parse('2026-01-31T12:00:00Z')

t.test('what an event took is known until its place is taken by a later one', async (t) => {
  const latency = createMetrics().latency
  for (const position of [7, 9_999, 10_007]) finish(latency, position)
  t.equal(latency.of(7), undefined, 'too long ago')
  t.match(latency.of(9_999), { id: 'id-9999', event: 'playing', position: 9_999, at })
  t.match(latency.of(10_007), { id: 'id-10007', position: 10_007 })
  t.equal(latency.of(8), undefined, 'never there')
})

t.test('recipients of a message are added up', async (t) => {
  const latency = createMetrics().latency
  latency.sent(7, 3)
  latency.sent(7, 2)
  t.equal(latency.recipientsOf(7), 5)
  latency.sent(10_007, 1)
  t.equal(latency.recipientsOf(7), undefined, 'too long ago')
  t.equal(latency.recipientsOf(10_007), 1)
})

t.test('a node delivers for a second after a message that had a recipient', async (t) => {
  let now = 0
  const clock = mock.method(performance, 'now', () => now)
  t.teardown(() => clock.mock.restore())
  const latency = createMetrics().latency
  latency.sent(7, 0)
  t.notOk(latency.isDelivering(), 'nobody has got a message')
  latency.sent(8, 1)
  now += 999
  t.ok(latency.isDelivering())
  now++
  t.notOk(latency.isDelivering())
})

t.test('what is known of a slow event stays as it was when its place is taken', async (t) => {
  const latency = createMetrics().latency
  finish(latency, 7)
  finish(latency, 10_007)
  t.strictSame(
    latency
      .slowest(at)
      .map(({ position }) => position)
      .sort(),
    [10_007, 7],
  )
})

function finish(latency: Latency, position: number): void {
  const way = latency.begin(performance.now())
  way.position = position
  latency.finish(way, `id-${position}`, 'playing', at)
}

t.test('a percentile is the nearest rank', async (t) => {
  const hundred = Array.from({ length: 100 }, (_, index) => index + 1)
  const rows: [sorted: number[], share: number, expected: number][] = [
    [[], 0.99, 0],
    [[7], 0.5, 7],
    [[7], 0.99, 7],
    [[1, 2], 0.5, 1],
    [[1, 2], 0.51, 2],
    [[1, 2, 3], 0.5, 2],
    [hundred, 0, 1],
    [hundred, 0.5, 50],
    [hundred, 0.99, 99],
    [hundred, 1, 100],
    [[1.23456789], 0.5, 1.235],
  ]
  for (const [sorted, share, expected] of rows) {
    t.equal(percentile(sorted, share), expected, `${sorted.length} samples at ${share}`)
  }
})

t.test('nothing measured is zero', async (t) => {
  t.strictSame(createPercentiles().summary(), { count: 0, p50: 0, p99: 0 })
})

t.test('samples may come in any order', async (t) => {
  const percentiles = createPercentiles()
  for (const ms of [300, 2, 100, 1, 20]) percentiles.add(ms)
  t.strictSame(percentiles.summary(), { count: 5, p50: 20, p99: 300 })
})

t.test('asking does not disturb', async (t) => {
  const percentiles = createPercentiles()
  for (const ms of [9, 1, 5]) percentiles.add(ms)
  t.strictSame(percentiles.summary(), percentiles.summary())
  percentiles.add(0)
  t.strictSame(percentiles.summary(), { count: 4, p50: 1, p99: 9 })
})

t.test('only the newest 4,096 count, of all that were seen', async (t) => {
  const percentiles = createPercentiles()
  for (let event = 0; event < 4096; event++) percentiles.add(500)
  for (let event = 0; event < 4095; event++) percentiles.add(1)
  t.strictSame(percentiles.summary(), { count: 8191, p50: 1, p99: 1 })
  t.equal(percentile([1, 500], 1), 500)
  percentiles.add(1)
  for (let event = 0; event < 42; event++) percentiles.add(300)
  t.strictSame(percentiles.summary(), { count: 8234, p50: 1, p99: 300 }, 'more than one in a hundred is slow')
})

t.test('exactly 220 ms is within the budget (service.md §8)', async (t) => {
  const metrics = createMetrics()
  t.equal(budgetMs, 220)
  t.equal(metrics.latency.record(219.9), false)
  t.equal(metrics.latency.record(220), false)
  t.equal(metrics.latency.record(220.1), true)
  t.equal(metrics.latency.summary().count, 3)
  t.match(await metrics.snapshot(), { hub_budget_exceeded_total: 1 })
  t.match((await metrics.exposition()).toString(), /hub_budget_seconds_bucket\{le="0\.22"\} 2\n/)
})
