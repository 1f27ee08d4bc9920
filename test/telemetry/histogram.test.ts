import { Histogram, Registry } from 'prom-client'
import t from 'tap'
import { createHistogram } from '../../telemetry/histogram.ts'

const of = { name: 'way_seconds', help: 'How long the way took', buckets: [0.001, 0.22, 1] }
const observed = [0.0005, 0.001, 0.1, 0.22, 0.23, 1, 7, 0]

t.test('Prometheus reads what it would read of prom-client', async (t) => {
  const [ours, theirs] = [new Registry(), new Registry()]
  const [observe] = createHistogram(ours, of)
  const histogram = new Histogram({ ...of, registers: [theirs] })
  t.equal(await ours.metrics(), await theirs.metrics(), 'before anything is observed')
  for (const value of observed) {
    observe?.(value)
    histogram.observe(value)
  }
  t.equal(await ours.metrics(), await theirs.metrics())
  t.match(await ours.metrics(), /way_seconds_count 8\n/)
})

t.test('each value of a label has its own numbers', async (t) => {
  const [ours, theirs] = [new Registry(), new Registry()]
  const [first, second] = createHistogram(ours, of, { name: 'stage', values: ['stored', 'written'] })
  const histogram = new Histogram({ ...of, labelNames: ['stage'], registers: [theirs] })
  for (const value of observed) {
    first?.(value)
    histogram.observe({ stage: 'stored' }, value)
  }
  second?.(0.5)
  histogram.observe({ stage: 'written' }, 0.5)
  t.equal(await ours.metrics(), await theirs.metrics())
})
