import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { generate } from 'mqtt-packet'
import t from 'tap'
import { startPlainBroker } from '../../plain-broker.ts'
import { connectPacket, rawClient } from '../../raw-client.ts'
import { createFailingStore, touches } from '../failing-store.ts'
import { createWire } from '../promises/wire.ts'

/* The node stops while clients are about to get in. */

const will = { topic: 'will', payload: Buffer.from('gone'), qos: 0 as const, retain: false }

t.test('a client without CONNACK leaves neither a session nor a will', async (t) => {
  const directory = t.testdir()
  for (const slow of ['session/', 'will/']) {
    const store = createFailingStore()
    const broker = await startPlainBroker({ directory, wrapStore: store.wrap })
    const client = await rawClient(t, broker.port)
    const isHeld = store.hold(touches(slow))
    client.send(connectPacket({ clientId: `late-${slow}`, clean: false, will }))
    await isHeld
    const closed = broker.close()
    store.release()
    await closed
    await client.closed()
    t.strictSame(client.packets, [], slow)
    const again = await startPlainBroker({ directory })
    for (const prefix of ['session/', 'will/']) {
      for await (const [key] of again.store.range(prefix)) t.fail(`${key} is left`)
    }
    await again.close()
  }
})

t.test('a connection whose handshake ends when the node has stopped is closed', async (t) => {
  const broker = await startPlainBroker()
  await broker.close()
  const [here, there] = createWire()
  broker.broker.accept(there, '127.0.0.1')
  here.write(generate(connectPacket({ clientId: 'late' })))
  while (!here.destroyed) await nextTurn()
  t.equal(broker.broker.connectionCount(), 0)
})

t.test('a PUBLISH that goes on while the node waits for other work is acknowledged', async (t) => {
  const store = createFailingStore()
  const broker = await startPlainBroker({ wrapStore: store.wrap, limits: { publishRate: 1 } })
  let settleThird: (() => void) | undefined
  broker.receiveWith(async ({ payload }) => {
    if (String(payload) === '3') await new Promise<void>((resolve) => (settleThird = resolve))
    return true
  })
  const leaving = await rawClient(t, broker.port)
  await leaving.connect({ clientId: 'leaving', clean: false })
  const publisher = await rawClient(t, broker.port)
  await publisher.connect({ clientId: 'publisher' })
  for (const messageId of [1, 2, 3]) {
    const message = { topic: 'a', payload: String(messageId), qos: 1 as const, messageId }
    publisher.send({ cmd: 'publish', ...message, dup: false, retain: false })
  }
  await publisher.next('puback', 1)
  const isHeld = store.hold(touches('session/'))
  leaving.send({ cmd: 'disconnect' })
  await isHeld
  const closed = broker.close()
  // The third PUBLISH waits for the publish rate, and goes on while the session is being stored.
  while (!settleThird) await nextTurn()
  store.release()
  // A node that does not wait for the third PUBLISH closes in this time.
  await Promise.race([closed, delay(200)])
  settleThird()
  await closed
  await publisher.closed()
  t.strictSame(
    publisher.packets.flatMap((packet) => (packet.cmd === 'puback' ? [packet.messageId] : [])),
    [1, 2, 3],
  )
})
