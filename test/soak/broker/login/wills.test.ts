import t from 'tap'
import { openBroker } from '../../../conformance/peers.ts'
import { patienceMs } from '../../../patience.ts'
import type { PlainBroker } from '../../../plain-broker.ts'
import { rawClient } from '../../../raw-client.ts'

const will = { topic: 'will', payload: Buffer.from('gone'), qos: 0 as const, retain: false }

async function connect(t: Parameters<typeof rawClient>[0], broker: PlainBroker, fields: object) {
  const client = await rawClient(t, broker.port)
  const { returnCode } = await client.connect({ ...fields })
  return { client, returnCode }
}

t.test('a credential with 1000 wills that wait for its publish rate gets no more in', async (t) => {
  const broker = await openBroker(t, { limits: { publishRate: 1, connectTimeoutMs: patienceMs } })
  const all = await Promise.all(
    Array.from({ length: 1_100 }, (_, index) => connect(t, broker, { clientId: `${index}`, will })),
  )
  t.ok(all.every(({ returnCode }) => returnCode === 0))
  for (const { client } of all) client.socket.destroy()
  while (broker.broker.connectionCount() > 0) await new Promise((resolve) => setImmediate(resolve))
  t.equal((await connect(t, broker, { clientId: 'one more', will })).returnCode, 3)
  t.equal((await connect(t, broker, { clientId: 'without a will' })).returnCode, 0)
  const { values } = await broker.metrics.connectionsRefused.get()
  t.match(
    values.filter(({ value }) => value > 0),
    [{ labels: { reason: 'too-many-wills' } }],
  )
})
