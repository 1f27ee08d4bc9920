import t from 'tap'
import { preparePublish } from '../../../broker/connection/frames.ts'
import { createSessionReading } from '../../../broker/fanout/reading.ts'
import type { Sending } from '../../../broker/fanout/sending.ts'
import { createSession } from '../../../broker/session/session.ts'
import type { Entry } from '../../../journal/entry.ts'
import { createMetrics } from '../../../telemetry/metrics.ts'

/* A delivery waits behind others, and a session has read its message from the journal meanwhile. */

const principal = { role: 'subscriber', username: 'u', filters: ['#'] } as const
const of = { clientId: 'c', clean: false, permission: '', principal, connection: undefined, createdAt: 1 }
const entry = (position: number): Entry => ({
  position,
  topic: 'a',
  payload: Buffer.from('a'),
  qos: 1,
  at: 0,
  queue: { keep: 'every' },
})

t.test('a live session gets no message a second time, and keeps its place', async (t) => {
  const sent: number[] = []
  const sending = {
    fits: () => true,
    hasRoom: () => true,
    write: (_session: unknown, _publish: unknown, { position }: { position: number }) =>
      sent.push(position) > 0,
  } as Partial<Sending> as Sending
  const reading = createSessionReading({
    head: 0,
    sending,
    catchingUp: { read: async () => undefined },
    bounds: { maxOwed: 10 },
    metrics: createMetrics(),
  })
  const session = Object.assign(createSession(of), { reading: 'live', upTo: 2 })
  for (const position of [1, 2, 3]) {
    reading.deliver(entry(position), preparePublish(entry(position)), [[session, 1]])
    t.equal(reading.upToOf(session), Math.max(position, 2))
  }
  t.same(sent, [3])
})
