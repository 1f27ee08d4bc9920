import t from 'tap'
import { budgetMs, createBudget, percentile } from '../../telemetry/budget.ts'
import { createMetrics } from '../../telemetry/metrics.ts'

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
  t.strictSame(createBudget().summary(), { count: 0, p50: 0, p99: 0 })
})

t.test('samples may come in any order', async (t) => {
  const budget = createBudget()
  for (const ms of [300, 2, 100, 1, 20]) budget.add(ms)
  t.strictSame(budget.summary(), { count: 5, p50: 20, p99: 300 })
})

t.test('asking does not disturb', async (t) => {
  const budget = createBudget()
  for (const ms of [9, 1, 5]) budget.add(ms)
  t.strictSame(budget.summary(), budget.summary())
  budget.add(0)
  t.strictSame(budget.summary(), { count: 4, p50: 1, p99: 9 })
})

t.test('only the newest 4,096 count, of all that were seen', async (t) => {
  const budget = createBudget()
  for (let event = 0; event < 4096; event++) budget.add(500)
  for (let event = 0; event < 4095; event++) budget.add(1)
  t.strictSame(budget.summary(), { count: 8191, p50: 1, p99: 1 })
  t.equal(percentile([1, 500], 1), 500)
  budget.add(1)
  for (let event = 0; event < 42; event++) budget.add(300)
  t.strictSame(budget.summary(), { count: 8234, p50: 1, p99: 300 }, 'more than one in a hundred is slow')
})

t.test('exactly 220 ms is within the budget (service.md §8)', async (t) => {
  const metrics = createMetrics()
  t.equal(budgetMs, 220)
  t.equal(metrics.recordBudget(219.9), false)
  t.equal(metrics.recordBudget(220), false)
  t.equal(metrics.recordBudget(220.1), true)
  t.equal(metrics.budget.summary().count, 3)
  t.match(await metrics.snapshot(), { hub_budget_exceeded_total: 1 })
  t.match(await metrics.exposition(), /hub_budget_seconds_bucket\{le="0\.22"\} 2\n/)
})
