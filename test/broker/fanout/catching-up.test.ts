import { Duplex } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { generate, type Packet, parser } from 'mqtt-packet'
import t, { type Test } from 'tap'
import type { Message } from '../../../event/message.ts'
import { openBroker, openFailing, peer, publishes, subscribe, subscriber } from '../../conformance/peers.ts'
import type { PlainBroker } from '../../plain-broker.ts'
import { touches } from '../failing-store.ts'
import { leave, message, persistent } from '../session/crashing-hub.ts'

const topics = Array.from({ length: 10 }, (_, n) => `e/${n}`)
/** After two of these messages, a buffer is so full that the next one waits. */
const events = topics.map((topic) => message(topic, 'x'.repeat(10_000)))
const maxInFlight = 4

t.test('after UNSUBACK no message comes that was chosen when the session came back', async (t) => {
  const broker = await openBroker(t)
  await leave(await subscriber(t, broker, 'c', { 'e/#': 1 }, persistent))
  await broker.broker.distribute(events)
  const client = heldClient(broker)
  await client.isBehind()
  await client.unsubscribe()
  client.take()
  t.same(await client.topics(), topics.slice(0, 2))
})

t.test('nor one that was read from the journal', async (t) => {
  const client = await readsJournal(t, events)
  await client.unsubscribe()
  client.take()
  t.same(await client.topics(), topics.slice(0, maxInFlight + 2))
})

t.test('a control event that is over when its turn comes does not come', async (t) => {
  let now = 1_000
  const control = { ...message('e/control', 'on'), queue: { keep: 'every', expires: now + 10 } } as const
  const client = await readsJournal(t, events.toSpliced(maxInFlight + 2, 0, control), () => now)
  now += 20
  client.take()
  await client.has('publish', 2 * maxInFlight)
  await client.unsubscribe()
  t.same(await client.topics(), topics.slice(0, 2 * maxInFlight))
})

for (const where of ['in flight', 'in the journal', 'for a client that is away'] as const) {
  t.test(`what a client may receive no more stays away, also ${where}`, async (t) => {
    let isWithdrawn = false
    const broker = await openBroker(t, {
      access: { mayReceive: (_principal, topic) => !isWithdrawn || topic !== 'secret' },
      limits: { maxInFlight: 1, queueLimit: 1 },
    })
    let client = await subscriber(t, broker, 'c', { '#': 1 }, persistent)
    const distribute = (topic: string) => broker.broker.distribute([message(topic, '')])
    await distribute(where === 'in flight' ? 'secret' : 'first')
    const { messageId = 0 } = await client.next('publish')
    if (where === 'in the journal') await distribute('secret')
    else {
      if (where !== 'in flight') client.send({ cmd: 'puback', messageId })
      await leave(client)
    }
    await distribute('other')
    // A session that is away has room for one message: not for one that it may not receive.
    if (where === 'for a client that is away') await distribute('secret')
    isWithdrawn = true
    if (where === 'in the journal') client.send({ cmd: 'puback', messageId })
    else client = await peer(t, broker, 'c', persistent)
    const before = where === 'in the journal' ? 1 : 0
    t.match(await client.next('publish', before), { topic: 'other' })
  })
}

t.test('a SUBSCRIBE while a QoS 2 message is being stored loses no value [MQTT-3.8.4-3]', async (t) => {
  const { store, broker } = await openFailing(t)
  const value = (payload: string, time: number) => {
    const rules = { qos: 2, retained: { slot: '', time } } as const
    return broker.broker.distribute([{ ...message('a', payload), ...rules }])
  }
  await value('1', 1)
  const client = await peer(t, broker, 'c', persistent)
  const storing = store.hold(touches('outgoing/'))
  subscribe(client, 1, { a: 2 })
  await storing
  await value('2', 2)
  subscribe(client, 2, { a: 2 })
  await client.next('suback', 1)
  store.release()
  await client.next('publish', 1)
  t.same(
    publishes(client).map(({ payload, retain }) => [`${payload}`, retain]),
    [
      ['1', true],
      ['2', true],
    ],
  )
})

/** A client that reads from the journal what follows the first messages. Two of these fill its buffer. */
async function readsJournal(t: Test, all: readonly Message[], clock = Date.now) {
  const broker = await openBroker(t, { limits: { maxInFlight }, clock })
  const client = heldClient(broker)
  client.send({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: 'e/#', qos: 1 }] })
  client.take()
  await client.has('suback')
  await broker.broker.distribute(all)
  await client.has('publish', maxInFlight)
  client.hold()
  for (const { cmd, messageId = 0 } of client.packets) {
    if (cmd === 'publish') client.send({ cmd: 'puback', messageId })
  }
  await client.isBehind()
  return client
}

/**
 * A client of a persistent session. At first, its network takes no bytes. It takes bytes after `take`, and none after
 * `hold`.
 */
function heldClient({ broker }: PlainBroker) {
  const packets: Packet[] = []
  const parse = parser()
  parse.on('packet', (packet) => packets.push(packet))
  let isHeld = true
  let goOn = () => {}
  const socket = new Duplex({
    read() {},
    write(chunk, _encoding, done) {
      goOn = () => {
        parse.parse(chunk)
        done()
      }
      if (!isHeld) goOn()
    },
  })
  broker.accept(socket, '127.0.0.1')
  // As from a network, a packet comes in a turn of its own.
  const send = (packet: Packet) => void setImmediate(() => socket.push(generate(packet)))
  const count = (cmd: Packet['cmd']) => packets.filter((packet) => packet.cmd === cmd).length
  const has = async (cmd: Packet['cmd'], wanted = 1) => {
    while (count(cmd) < wanted) await nextTurn()
  }
  const protocol = { protocolId: 'MQTT', protocolVersion: 4 } as const
  send({ cmd: 'connect', ...protocol, clientId: 'c', clean: false, keepalive: 0 })

  return {
    packets,
    send,
    has,
    hold(): void {
      isHeld = true
    },
    take(): void {
      isHeld = false
      goOn()
    },
    /** Resolves when more bytes wait for the client than the broker writes without a pause. */
    async isBehind(): Promise<void> {
      while (socket.writableLength <= 16 * 1024) await nextTurn()
    },
    /** Resolves when UNSUBSCRIBE has taken effect. */
    async unsubscribe(): Promise<void> {
      send({ cmd: 'unsubscribe', messageId: 2, unsubscriptions: ['e/#'] })
      while ((await broker.session('c'))?.subscriptions.length !== 0) await nextTurn()
    },
    /** The topics of messages before UNSUBACK and in some turns after it. */
    async topics(): Promise<string[]> {
      await has('unsuback')
      for (let turn = 0; turn < 50; turn++) await nextTurn()
      return packets.flatMap((packet) => (packet.cmd === 'publish' ? [packet.topic] : []))
    },
  }
}
