import { EventEmitter, once } from 'node:events'
import pino from 'pino'
import t from 'tap'
import { watchStuckQueues } from '../../../delivery/runner/stuck-queues.ts'
import { createMetrics } from '../../../telemetry/metrics.ts'

/** The watch does not keep the process alive, so this timer does. */
const alive = setInterval(() => undefined, 60_000)
t.teardown(() => clearInterval(alive))

function watch(stuckQueues: () => string[], pickUp: (queue: string) => Promise<void>) {
  const lines: Record<string, unknown>[] = []
  const metrics = createMetrics()
  const stop = watchStuckQueues({
    stuckQueues,
    pickUp,
    metrics,
    lookMs: 5,
    patienceMs: 20,
    log: pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) }),
  })
  return { stop, lines, metrics }
}

t.test('a queue that stands still is logged, counted and picked up', async (t) => {
  const events = new EventEmitter()
  const standing = new Set(['still'])
  const { stop, lines, metrics } = watch(
    () => [...standing],
    async (queue) => {
      standing.delete(queue)
      events.emit('picked up', queue)
    },
  )
  t.teardown(stop)
  t.strictSame(await once(events, 'picked up'), ['still'])
  t.match(lines, [{ queue: 'still', msg: /stood still/ }])
  t.match(String(await metrics.exposition()), /hub_queues_stuck_total 1/)
})

t.test(
  'a queue that goes on in time is left alone, and one that cannot be picked up is tried again',
  async (t) => {
    const events = new EventEmitter()
    let wentOn = 0
    const tries: number[] = []
    const { stop, lines } = watch(
      () => {
        // The second queue stands still for less than 15 ms at a time. So even a watch that looks late never sees it
        // stand for 20 ms, the limit.
        if (performance.now() - wentOn < 15) return ['stuck', 'goes on now and then']
        wentOn = performance.now()
        return ['stuck']
      },
      async (queue) => {
        if (tries.push(performance.now()) === 3) events.emit('tried')
        throw new Error(`the store is away: ${queue}`)
      },
    )
    t.teardown(stop)
    await once(events, 'tried')
    t.notOk(lines.some(({ queue }) => queue !== 'stuck'))
    const pauses = tries.slice(1).map((at, nth) => at - (tries[nth] ?? 0))
    t.ok(
      pauses.every((pause) => pause >= 20),
      'each time it must stand still as long as before',
    )
  },
)
