import t from 'tap'
import { createCollection } from '../../telemetry/collected.ts'
import { createMetrics } from '../../telemetry/metrics.ts'

/** A process that has published so many events, and in which the store works or does not. */
function processWith(of: { published: number; isStoreOk: boolean }) {
  const metrics = createMetrics()
  metrics.events.inc({ outcome: 'published' }, of.published)
  metrics.connections.set(of.published)
  for (let event = 0; event < of.published; event++) metrics.latency.record(1)
  metrics.read({ storeOk: (set) => set(of.isStoreOk ? 1 : 0) })
  return metrics
}

t.test('counters add up, and keep what ended processes have counted', async (t) => {
  const collection = createCollection()
  const [first, second] = [
    processWith({ published: 3, isStoreOk: true }),
    processWith({ published: 4, isStoreOk: false }),
  ]
  await collection.take(1, await first.collect())
  await collection.take(2, await second.collect())
  t.same(await shown(), { published: 7, connections: 7, measured: 7, store: 0 })
  await collection.take(2, await second.collect())
  t.same(await shown(), { published: 7, connections: 7, measured: 7, store: 0 }, 'the same again')

  const third = processWith({ published: 1, isStoreOk: true })
  await collection.take(2, await third.collect())
  t.same(await shown(), { published: 8, connections: 4, measured: 8, store: 1 })
  const fourth = processWith({ published: 1, isStoreOk: true })
  await collection.take(1, await fourth.collect())
  t.same(await shown(), { published: 9, connections: 2, measured: 9, store: 1 })

  async function shown() {
    const text = (await createMetrics({}, collection.all).exposition()).toString()
    const value = (series: string) =>
      Number(
        text
          .split('\n')
          .find((line) => line.startsWith(`${series} `))
          ?.slice(series.length),
      )
    return {
      published: value('hub_events_total{outcome="published"}'),
      connections: value('hub_connections'),
      measured: value('hub_budget_seconds_count'),
      store: value('hub_store_ok'),
    }
  }
})
