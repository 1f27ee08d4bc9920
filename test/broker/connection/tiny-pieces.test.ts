import { once } from 'node:events'
import { duplexPair } from 'node:stream'
import { generate } from 'mqtt-packet'
import t, { type Test } from 'tap'
import type { Broker } from '../../../broker/broker.ts'
import { openBroker, publish } from '../../conformance/peers.ts'

t.test('the connections of a credential may send so many tiny pieces a second, all together', async (t) => {
  const { broker } = await openBroker(t, { limits: { publishRate: 100 } })
  t.same(
    await drip(t, broker, 'one', 900),
    { isCutOff: false, pieces: 900 },
    'one packet that comes byte by byte',
  )
  const others = await Promise.all(Array.from({ length: 8 }, (_, index) => drip(t, broker, `${index}`, 900)))
  t.ok(
    others.some(({ isCutOff }) => isCutOff),
    'not all of eight more at once',
  )
})

t.test('what lies behind too many tiny pieces of a packet is not read', async (t) => {
  const { broker } = await openBroker(t, { limits: { publishRate: 0 } })
  const { isCutOff, pieces } = await drip(t, broker, 'one', 2_000)
  t.ok(isCutOff)
  // The broker allows 1,024 pieces. If it read on in `endGently`, it would take 128 more.
  t.ok(pieces < 1_100, `${pieces} pieces were taken`)
})

/** Sends a PUBLISH byte by byte until the broker cuts the connection off. `pieces`: bytes sent. */
async function drip(
  t: Test,
  broker: Broker,
  clientId: string,
  bytes: number,
): Promise<{ isCutOff: boolean; pieces: number }> {
  const [client, accepted] = duplexPair()
  t.teardown(() => accepted.destroy())
  broker.accept(accepted, '127.0.0.1')
  client.write(generate({ cmd: 'connect', clientId, clean: true, keepalive: 0 }))
  await once(client, 'data')
  const unfinished = generate(publish('a', 1, 1, { payload: 'x'.repeat(10_000) })).subarray(0, bytes)
  let pieces = 0
  for (; pieces < bytes && !accepted.destroyed; pieces++) {
    client.write(Buffer.of(unfinished[pieces] ?? 0))
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { isCutOff: accepted.destroyed, pieces }
}
