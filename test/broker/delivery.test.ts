import type { IPublishPacket } from 'mqtt-packet'
import t from 'tap'
import { openBroker } from '../conformance/peers.ts'
import { startPlainBroker } from '../plain-broker.ts'
import { rawClient } from '../raw-client.ts'

const publish = (topic: string, qos: 0 | 1 | 2, messageId: number, fields: Partial<IPublishPacket> = {}) =>
  ({ cmd: 'publish', topic, payload: topic, qos, messageId, retain: false, dup: false, ...fields }) as const

async function subscribed(t: Tap, port: number, filter: string, qos: 0 | 1 | 2, fields = {}) {
  const client = await rawClient(t, port)
  await client.connect({ clientId: 'subscriber', ...fields })
  client.send({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: filter, qos }] })
  await client.next('suback')
  return client
}
type Tap = Parameters<typeof rawClient>[0]

t.test(
  'the delivered QoS is the lower of published and granted, also with wildcards and retained',
  async (t) => {
    const broker = await openBroker(t)
    const publisher = await rawClient(t, broker.port)
    await publisher.connect({ clientId: 'publisher' })
    for (const granted of [0, 1, 2] as const) {
      for (const published of [0, 1, 2] as const) {
        const topic = `q/${granted}/${published}/x`
        const live = await subscribed(t, broker.port, `q/${granted}/${published}/+`, granted, {
          clientId: `live${topic}`,
        })
        // An identifier of its own: the one before may be in use until its PUBCOMP [MQTT-2.3.1-4].
        const messageId = 1 + 3 * granted + published
        publisher.send(publish(topic, published, messageId, { retain: true }), { cmd: 'pubrel', messageId })
        const lower = Math.min(granted, published)
        t.equal((await live.next('publish')).qos, lower, `live ${topic}`)
        const late = await subscribed(t, broker.port, topic, granted, { clientId: `late${topic}` })
        const retained = await late.next('publish')
        t.equal(retained.qos, lower, `retained ${topic}`)
        t.equal(retained.retain, true)
      }
    }
  },
)

t.test('overlapping filters deliver one copy at the higher QoS', async (t) => {
  const broker = await openBroker(t)
  for (const clean of [true, false]) {
    const client = await rawClient(t, broker.port)
    await client.connect({ clientId: `overlap${clean}`, clean })
    const subscriptions = [
      { topic: 'a/#', qos: 0 },
      { topic: 'a/b', qos: 1 },
      { topic: '+/b', qos: 0 },
    ] as const
    client.send({ cmd: 'subscribe', messageId: 1, subscriptions: [...subscriptions] })
    t.same((await client.next('suback')).granted, [0, 1, 0])
    client.send(publish('a/b', 1, 9))
    await client.next('puback')
    await client.settled()
    const copies = client.packets.filter((packet) => packet.cmd === 'publish')
    t.same(
      copies.map((packet) => packet.qos),
      [1],
      `clean ${clean}`,
    )
  }
})

t.test(
  'an offline session gets everything in order, and in-flight messages again with DUP and the same id',
  async (t) => {
    const broker = await openBroker(t)
    const first = await subscribed(t, broker.port, 'a/#', 2, { clean: false })
    first.socket.destroy()
    const publisher = await rawClient(t, broker.port)
    await publisher.connect({ clientId: 'publisher' })
    for (let id = 1; id <= 250; id++) publisher.send(publish(`a/${id}`, id % 2 === 0 ? 1 : 2, id))
    await publisher.next('puback', 124)
    await publisher.next('pubrec', 124)

    const second = await rawClient(t, broker.port)
    t.equal((await second.connect({ clientId: 'subscriber', clean: false })).sessionPresent, true)
    await second.next('publish', 99)
    await second.settled()
    const sent = second.packets.filter((packet) => packet.cmd === 'publish')
    t.equal(sent.length, 100, 'no more than the window')
    t.ok(sent.every((packet) => !packet.dup))
    second.socket.destroy()

    const third = await rawClient(t, broker.port)
    await third.connect({ clientId: 'subscriber', clean: false })
    await third.next('publish', 99)
    await third.settled()
    const again = third.packets.filter((packet) => packet.cmd === 'publish')
    t.ok(
      again.every((packet) => packet.dup),
      'DUP on redelivery',
    )
    t.same(
      again.map((packet) => [packet.messageId, packet.topic]),
      sent.map((packet) => [packet.messageId, packet.topic]),
    )

    // Acknowledge everything from here on.
    const seen: string[] = []
    for (let index = 0; index < 250; index++) {
      const packet = await third.next('publish', index)
      seen.push(packet.topic)
      const messageId = packet.messageId ?? 0
      if (packet.qos === 1) third.send({ cmd: 'puback', messageId })
      else third.send({ cmd: 'pubrec', messageId }, { cmd: 'pubcomp', messageId })
    }
    t.same(
      seen,
      Array.from({ length: 250 }, (_, index) => `a/${index + 1}`),
    )
    await third.settled()
    await third.next('pubrel', 124)
    t.equal((await broker.broker.session('subscriber'))?.queued, 0)
  },
)

t.test('a PUBREL is repeated after a reconnect until PUBCOMP', async (t) => {
  const broker = await openBroker(t)
  const first = await subscribed(t, broker.port, 'a', 2, { clean: false })
  first.send(publish('a', 2, 5), { cmd: 'pubrel', messageId: 5 })
  const { messageId = 0 } = await first.next('publish')
  first.send({ cmd: 'pubrec', messageId })
  await first.next('pubrel')
  first.socket.destroy()
  const second = await rawClient(t, broker.port)
  await second.connect({ clientId: 'subscriber', clean: false })
  t.equal((await second.next('pubrel')).messageId, messageId)
  second.send({ cmd: 'pubcomp', messageId })
  await second.settled()
  t.equal(broker.broker.sessions.get('subscriber')?.inFlight.size, 0)
  t.equal(second.packets.filter(({ cmd }) => cmd === 'publish').length, 0)
})

t.test('session present tells of a session even without subscriptions', async (t) => {
  const broker = await openBroker(t)
  const present: boolean[] = []
  for (const clean of [false, false, true, false]) {
    const client = await rawClient(t, broker.port)
    present.push((await client.connect({ clean })).sessionPresent)
    client.send({ cmd: 'disconnect' })
    await client.closed()
  }
  t.same(present, [false, true, false, false])
})

t.test('a QoS 2 retransmission is processed once, until PUBREL frees the identifier', async (t) => {
  const broker = await openBroker(t)
  const subscriber = await subscribed(t, broker.port, 'a', 0)
  for (const clean of [true, false]) {
    const publisher = await rawClient(t, broker.port)
    await publisher.connect({ clientId: `publisher${clean}`, clean })
    publisher.send(publish('a', 2, 7), publish('a', 2, 7, { dup: true }))
    await publisher.next('pubrec', 1)
    publisher.send({ cmd: 'pubrel', messageId: 7 })
    await publisher.next('pubcomp')
    publisher.send(publish('a', 2, 7, { payload: 'another' }))
    await publisher.next('pubrec', 2)
  }
  await subscriber.settled()
  const payloads = subscriber.packets
    .filter((packet) => packet.cmd === 'publish')
    .map(({ payload }) => `${payload}`)
  t.same(payloads, ['a', 'another', 'a', 'another'])
})

t.test('a QoS 2 identifier of a client that forgot its messages does not hide another message', async (t) => {
  const broker = await openBroker(t)
  const subscriber = await subscribed(t, broker.port, 'a', 0)
  const comesBack = async () => {
    const client = await rawClient(t, broker.port)
    await client.connect({ clientId: 'playout', clean: false })
    return client
  }
  const killed = await comesBack()
  killed.send(publish('a', 2, 1, { payload: 'before' }))
  await killed.next('pubrec')
  killed.socket.destroy()
  const client = await comesBack()
  const send = async (payload: string, nth: number) => {
    client.send(publish('a', 2, 1, { payload }))
    await client.next('pubrec', nth)
  }
  await send('after', 0)
  await send('after', 1)
  client.send({ cmd: 'pubrel', messageId: 1 })
  await client.next('pubcomp')
  await subscriber.settled()
  t.same(
    subscriber.packets.flatMap((packet) => (packet.cmd === 'publish' ? [`${packet.payload}`] : [])),
    ['before', 'after'],
  )
})

t.test(
  'a publish that cannot be stored is not acknowledged, and its QoS 2 retransmission is processed',
  async (t) => {
    let failing = false
    const broker = await startPlainBroker({
      wrapStore: (store) => ({
        ...store,
        commit: (changes) => (failing ? Promise.reject(new Error('disk full')) : store.commit(changes)),
      }),
    })
    t.teardown(broker.close)
    const subscriber = await subscribed(t, broker.port, 'a', 1, { clean: false })
    for (const qos of [1, 2] as const) {
      const publisher = await rawClient(t, broker.port)
      await publisher.connect({ clientId: 'publisher', clean: false })
      failing = true
      publisher.send(publish('a', qos, 7))
      await publisher.closed()
      failing = false
      t.equal(publisher.packets.length, 1, 'CONNACK only')
      const again = await rawClient(t, broker.port)
      await again.connect({ clientId: 'publisher', clean: false })
      again.send(publish('a', qos, 7, { dup: true }))
      await again.next(qos === 1 ? 'puback' : 'pubrec')
    }
    await subscriber.settled()
    t.equal(subscriber.packets.filter(({ cmd }) => cmd === 'publish').length, 2)
  },
)

t.test('live messages are never dropped because they finish out of order', async (t) => {
  const broker = await openBroker(t)
  const subscriber = await subscribed(t, broker.port, 'a/#', 0)
  const publishers = await Promise.all(
    Array.from({ length: 20 }, async (_, index) => {
      const client = await rawClient(t, broker.port)
      await client.connect({ clientId: `p${index}` })
      for (let id = 1; id <= 100; id++) client.send(publish(`a/${index}/${id}`, 1, id))
      return client
    }),
  )
  await Promise.all(publishers.map((client) => client.next('puback', 99)))
  await subscriber.settled()
  const topics = new Set(
    subscriber.packets.flatMap((packet) => (packet.cmd === 'publish' ? [packet.topic] : [])),
  )
  t.equal(topics.size, 2000)
})

t.test('a subscriber that stops reading is cut off and delays nobody', async (t) => {
  const broker = await openBroker(t, { limits: { outgoingBuffer: 256 * 1024 } })
  const frozen = await subscribed(t, broker.port, 'a/#', 1, { clientId: 'frozen' })
  frozen.socket.pause()
  const healthy = await subscribed(t, broker.port, 'a/#', 1, { clientId: 'healthy' })
  const publisher = await rawClient(t, broker.port)
  await publisher.connect({ clientId: 'publisher' })
  const payload = Buffer.alloc(20_000, 'x')
  const count = 1000
  for (let index = 0; index < count; index++) {
    publisher.send(publish('a/b', 1, 1 + (index % 60_000), { payload }))
    const { messageId = 0 } = await healthy.next('publish', index)
    healthy.send({ cmd: 'puback', messageId })
  }
  t.equal(healthy.packets.filter(({ cmd }) => cmd === 'publish').length, count)
  t.match(
    broker.lines.find(({ msg }) => msg === 'connection closed'),
    { clientId: 'frozen', reason: 'slow' },
  )
})

t.test('a persistent session that reads more slowly than events come gets all of them', async (t) => {
  const broker = await openBroker(t, { limits: { outgoingBuffer: 256 * 1024 } })
  const reader = await subscribed(t, broker.port, 'a/#', 1, { clientId: 'reader', clean: false })
  reader.socket.pause()
  const publisher = await rawClient(t, broker.port)
  await publisher.connect({ clientId: 'publisher' })
  const payload = Buffer.alloc(20_000, 'x')
  // More than the buffers of the operating system and of the broker hold.
  const count = 900
  for (let id = 1; id <= count; id++) publisher.send(publish('a/b', 1, id, { payload }))
  await publisher.next('puback', count - 1)
  reader.socket.resume()
  for (let index = 0; index < count; index++) {
    const { messageId = 0 } = await reader.next('publish', index)
    reader.send({ cmd: 'puback', messageId })
  }
  t.notOk(broker.lines.some(({ reason }) => reason === 'slow'))
})

t.test('a will is published when the connection is reset', async (t) => {
  const broker = await openBroker(t)
  const watcher = await subscribed(t, broker.port, 'gone', 1, { clientId: 'watcher' })
  const client = await rawClient(t, broker.port)
  await client.connect({ will: { topic: 'gone', payload: Buffer.from('reset'), qos: 1, retain: false } })
  client.socket.resetAndDestroy()
  t.equal(`${(await watcher.next('publish')).payload}`, 'reset')
})

t.test('what is accepted while a queue is being delivered is not lost behind it', async (t) => {
  // Commits of events take 20 ms, so the delivery of the queue overtakes them.
  const broker = await openBroker(t, {
    wrapStore: (store) => ({
      ...store,
      commit: async (changes, underway) => {
        const isEvent = changes.some((change) => 'put' in change && change.put.startsWith('journal/'))
        if (isEvent) await new Promise((resolve) => setTimeout(resolve, 20))
        return store.commit(changes, underway)
      },
    }),
  })
  const first = await subscribed(t, broker.port, 'a/#', 1, { clean: false })
  first.socket.destroy()
  const publisher = await rawClient(t, broker.port)
  await publisher.connect({ clientId: 'publisher' })
  const count = 300
  const send = (from: number, to: number) => {
    for (let id = from; id <= to; id++) publisher.send(publish(`a/${id}`, 1, id))
  }
  send(1, 5)
  await publisher.next('puback', 4)

  const second = await rawClient(t, broker.port)
  await second.connect({ clientId: 'subscriber', clean: false })
  send(6, 50)
  const seen: string[] = []
  for (let index = 0; index < count; index++) {
    const packet = await second.next('publish', index)
    seen.push(packet.topic)
    second.send({ cmd: 'puback', messageId: packet.messageId ?? 0 })
    // Publishes a few live messages at a time, while the broker delivers the queue.
    const from = 51 + index * 5
    if (from < count) send(from, from + 4)
  }
  t.same(
    seen,
    Array.from({ length: count }, (_, index) => `a/${index + 1}`),
  )
})
