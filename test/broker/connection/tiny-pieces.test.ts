import { once } from 'node:events'
import { duplexPair } from 'node:stream'
import { generate } from 'mqtt-packet'
import t from 'tap'
import { openBroker, publish } from '../../conformance/peers.ts'

t.test('the connections of a credential may send so many tiny pieces a second, all together', async (t) => {
  const { broker } = await openBroker(t, { limits: { publishRate: 100 } })
  const unfinished = generate(publish('a', 1, 1, { payload: 'x'.repeat(10_000) })).subarray(0, 900)
  /** Resolves when all of it is taken, or the connection is cut off. */
  async function drip(clientId: string): Promise<{ isCutOff: boolean }> {
    const [client, accepted] = duplexPair()
    t.teardown(() => accepted.destroy())
    broker.accept(accepted, '127.0.0.1')
    client.write(generate({ cmd: 'connect', clientId, clean: true, keepalive: 0 }))
    await once(client, 'data')
    for (const byte of unfinished) {
      if (accepted.destroyed) break
      client.write(Buffer.of(byte))
      await new Promise((resolve) => setImmediate(resolve))
    }
    return { isCutOff: accepted.destroyed }
  }
  t.same(await drip('one'), { isCutOff: false }, 'one packet that comes byte by byte')
  const others = await Promise.all(Array.from({ length: 8 }, (_, index) => drip(`${index}`)))
  t.ok(
    others.some(({ isCutOff }) => isCutOff),
    'not all of eight more at once',
  )
})
