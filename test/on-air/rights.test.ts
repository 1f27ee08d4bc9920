import { mock } from 'node:test'
import pino from 'pino'
import t from 'tap'
import { noOthers } from '../../listener/shared-counts.ts'
import { createStreams } from '../../on-air/streams.ts'
import { viewOf } from '../../on-air/view.ts'
import { createMetrics } from '../../telemetry/metrics.ts'

t.test('a stream ends with the right of its reader', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  let now = 1_000
  const streams = createStreams({
    journal: { head: () => 0, floor: () => 1, onEach: () => () => undefined } as never,
    returnable: { since: () => [] },
    positionBefore: async () => 0,
    parts: { of: async () => [], ahead: async () => [] },
    state: { of: async () => Buffer.alloc(0) },
    livestreams: { find: () => undefined, ids: async () => [] },
    catchUp: async () => undefined,
    shared: noOthers,
    maxStreams: 10,
    isCutOff: () => false,
    clock: () => now,
    log: pino({ level: 'silent' }),
    metrics: createMetrics(),
  })
  t.teardown(streams.close)
  const ended: string[] = []
  const open = (name: string, expiresAt: number | undefined) =>
    streams.open(
      { write: () => true, paced: async () => undefined, end: () => void ended.push(name) },
      {
        view: viewOf(['radio/#']),
        livestreams: undefined,
        delayMs: 0,
        after: undefined,
        mostBackMs: Number.POSITIVE_INFINITY,
        holder: name,
        expiresAt,
        isStillUser: async () => true,
      },
    )
  open('token of an hour', 3_000)
  open('token of two hours', 9_000)
  open('reader', undefined)
  mock.timers.tick(1_000)
  t.same(ended, [])
  now = 3_000
  mock.timers.tick(1_000)
  t.same(ended, ['token of an hour'])
})
