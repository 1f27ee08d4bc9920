import { generate } from 'mqtt-packet'
import t from 'tap'
import { startPlainBroker } from '../plain-broker.ts'
import { rawClient } from '../raw-client.ts'

t.test(
  'a burst over many connections is decided in many turns, with room for others in between',
  async (t) => {
    const broker = await startPlainBroker()
    t.teardown(broker.close)
    let inThisTurn = 0
    let most = 0
    await broker.broker.start(async () => {
      if (inThisTurn === 0) setImmediate(() => (inThisTurn = 0))
      most = Math.max(most, ++inThisTurn)
      return true
    })
    const clients = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const client = await rawClient(t, broker.port)
        await client.connect({ clientId: `studio ${index}` })
        return client
      }),
    )
    const ids = Array.from({ length: 50 }, (_, index) => index + 1)
    const burst = ids.map((messageId) =>
      generate({ cmd: 'publish', topic: 'a', payload: 'x', qos: 1, dup: false, retain: false, messageId }),
    )
    for (const client of clients) client.send(...burst)
    for (const client of clients) {
      await client.next('puback', 49)
      const acknowledged = client.packets.flatMap((packet) =>
        packet.cmd === 'puback' ? packet.messageId : [],
      )
      t.strictSame(acknowledged, ids, 'everything, in order')
    }
    t.ok(most <= 128, `at most ${most} in one turn`)
  },
)
