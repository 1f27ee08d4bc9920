import { setImmediate } from 'node:timers/promises'
import pino from 'pino'
import t, { type Test } from 'tap'
import { createPlugins } from '../../../delivery/plugins/plugins.ts'
import type { WorkItem } from '../../../delivery/queue/work-item.ts'
import type { AttemptOutcome } from '../../../delivery/target.ts'

/*
 * Other people write the drivers: nothing that a driver does may harm the hub.
 */

const item: WorkItem = {
  sequence: 1,
  messageId: 'm1',
  position: 1,
  enqueuedAt: 0,
  seen: 0,
  tries: 2,
  refusals: 0,
  attempts: [],
  details: { plugin: { type: 'dts' }, institutionId: 'urn:org:institution:1' },
}

/** Starts one attempt by a driver whose `deliver` is the given function. */
async function start(t: Test, deliver: (...given: unknown[]) => unknown) {
  const plugins = createPlugins({
    targets: [{ type: 'dts', url: 'https://dts.example' }],
    driverOf: () => ({ deliver: deliver as never }),
    log: pino({ level: 'silent' }),
  })
  t.teardown(plugins.close)
  const stopping = new AbortController()
  const target = plugins.targetOf('plugins.dts')
  if (!target) throw new Error('no target')
  return { stopping, done: target.deliver(item, Buffer.from('{"id":"m1"}'), stopping.signal) }
}

t.test('a driver gets the item, its message id and the number of the try', async (t) => {
  const given: unknown[] = []
  const { done } = await start(t, async (...all) => void given.push(...all))
  t.same(await done, { result: 'acknowledged', status: null, reason: null })
  t.match(given, [
    {
      action: 'plugins.dts.event',
      event: { id: 'm1' },
      plugin: { type: 'dts' },
      institutionId: 'urn:org:institution:1',
    },
    { messageId: 'm1', attempt: 3, signal: AbortSignal },
  ])
})

const nonsense = {
  result: 'failed',
  status: null,
  reason: 'the driver returned something that is no outcome',
}
const outcomes: [what: string, returned: unknown, expected: AttemptOutcome][] = [
  ['nothing', undefined, { result: 'acknowledged', status: null, reason: null }],
  [
    'an acknowledgement',
    { result: 'acknowledged', status: 202, reason: 'queued' },
    { result: 'acknowledged', status: 202, reason: null },
  ],
  [
    'a refusal',
    { result: 'refused', status: 422, reason: 'no' },
    { result: 'refused', status: 422, reason: 'no' },
  ],
  ['no reason', { result: 'failed' }, { result: 'failed', status: null, reason: 'failed' }],
  [
    'a pause',
    { result: 'failed', status: 429, reason: 'slow', retryAfterMs: 5 },
    { result: 'failed', status: 429, reason: 'slow', retryAfterMs: 5 },
  ],
  [
    'a pause that is no number',
    { result: 'failed', status: '429', reason: 'slow', retryAfterMs: Number.NaN },
    { result: 'failed', status: null, reason: 'slow' },
  ],
  ['an answer of fetch', new Response('ok'), nonsense as AttemptOutcome],
  ['true', true, nonsense as AttemptOutcome],
  ['null', null, nonsense as AttemptOutcome],
]
for (const [what, returned, expected] of outcomes) {
  t.test(`a driver that returns ${what}`, async (t) => {
    const { done } = await start(t, async () => returned)
    t.strictSame(await done, expected)
  })
}

const failures: [what: string, deliver: () => unknown, reason: string][] = [
  ['throws', () => Promise.reject(new Error('no route')), 'no route'],
  ['throws a text', () => Promise.reject('no route'), 'no route'],
  [
    'throws at once',
    () => {
      throw new Error('not even asynchronous')
    },
    'not even asynchronous',
  ],
]
for (const [what, deliver, reason] of failures) {
  t.test(`a driver that ${what} has failed, and nothing follows when the hub stops`, async (t) => {
    const unhandled: unknown[] = []
    const note = (reason: unknown) => void unhandled.push(reason)
    process.on('unhandledRejection', note)
    t.teardown(() => process.off('unhandledRejection', note))
    const { done, stopping } = await start(t, deliver)
    t.same(await done, { result: 'failed', status: null, reason })
    stopping.abort()
    await setImmediate()
    t.same(unhandled, [])
  })
}

t.test('a driver that never settles is let go when the hub stops', async (t) => {
  let signal: AbortSignal | undefined
  const { done, stopping } = await start(t, (_item, context) => {
    signal = Object(context).signal
    return new Promise(() => undefined)
  })
  stopping.abort()
  t.match(await done, { result: 'failed', status: null })
  t.ok(signal?.aborted, 'and told so')
})
