import pino from 'pino'
import t from 'tap'
import { failedBy, readOutcome } from '../../../delivery/plugins/outcome.ts'
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

t.test('a driver gets the item, its message id and the number of the try', async (t) => {
  const given: unknown[] = []
  const acknowledged = { result: 'acknowledged', status: null, reason: null } as const
  const { targetOf } = createPlugins({
    targets: [{ type: 'dts', url: 'https://dts.example' }],
    driverOf: () => ({
      async deliver(...all) {
        given.push(...all)
        return acknowledged
      },
    }),
    log: pino({ level: 'silent' }),
  })
  const { signal } = new AbortController()
  t.equal(await targetOf('plugins.dts')?.deliver(item, Buffer.from('{"id":"m1"}'), signal), acknowledged)
  t.same(given, [
    {
      action: 'plugins.dts.event',
      event: { id: 'm1' },
      plugin: { type: 'dts' },
      institutionId: 'urn:org:institution:1',
    },
    { messageId: 'm1', attempt: 3, signal },
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
    t.strictSame(readOutcome(returned), expected)
  })
}

t.test('a driver that throws has failed', async (t) => {
  const failed = { result: 'failed', status: null, reason: 'no route' }
  t.same(failedBy(new Error('no route')), failed)
  t.same(failedBy('no route'), failed, 'also where it throws a text')
})
