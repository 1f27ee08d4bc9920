import t from 'tap'
import { type PlainBroker, startPlainBroker } from '../../plain-broker.ts'
import { rawClient } from '../../raw-client.ts'

const will = { topic: 'will', payload: Buffer.from('gone'), qos: 0 as const, retain: false }

async function connect(t: Parameters<typeof rawClient>[0], broker: PlainBroker, fields: object) {
  const client = await rawClient(t, broker.port)
  const { returnCode } = await client.connect({ ...fields })
  return { client, returnCode }
}

t.test('the will of a credential that is not valid any more is void', async (t) => {
  const valid = { now: true }
  const broker = await startPlainBroker({ access: { isValid: () => valid.now } })
  t.teardown(broker.close)
  const watcher = await connect(t, broker, { clientId: 'watcher' })
  watcher.client.send({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: '#', qos: 0 }] })
  await watcher.client.next('suback')
  for (const isValid of [false, true]) {
    const { client } = await connect(t, broker, { clientId: `${isValid}`, will })
    valid.now = isValid
    client.socket.destroy()
    while (broker.broker.isConnected(`${isValid}`)) await new Promise((resolve) => setImmediate(resolve))
  }
  await watcher.client.next('publish')
  await watcher.client.settled()
  t.equal(watcher.client.packets.filter(({ cmd }) => cmd === 'publish').length, 1)
})
