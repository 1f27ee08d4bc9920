import { setImmediate as nextTurn } from 'node:timers/promises'
import { generate } from 'mqtt-packet'
import t from 'tap'
import { startPlainBroker } from '../../plain-broker.ts'
import { rawClient } from '../../raw-client.ts'
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
    client.send({
      ...{ cmd: 'connect', protocolId: 'MQTT', protocolVersion: 4 },
      ...{ clientId: `late-${slow}`, clean: false, keepalive: 0, will },
    })
    await isHeld
    const closed = broker.close()
    store.release()
    await closed
    await client.closed()
    t.notMatch(client.packets, [{ cmd: 'connack', returnCode: 0 }], slow)
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
  here.write(
    generate({
      cmd: 'connect',
      protocolId: 'MQTT',
      protocolVersion: 4,
      clientId: 'late',
      clean: true,
      keepalive: 0,
    }),
  )
  while (!here.destroyed) await nextTurn()
  t.equal(broker.broker.connectionCount(), 0)
})
