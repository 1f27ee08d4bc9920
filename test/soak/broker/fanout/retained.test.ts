import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { touches } from '../../../broker/failing-store.ts'
import {
  openBroker,
  openFailing,
  type Peer,
  peer,
  publish,
  publishes,
  subscribe,
  subscriber,
} from '../../../conformance/peers.ts'

/* The retained messages that a new subscriber gets, while it also gets live messages. */

const retained = (topic: string, payload: string, qos: 0 | 1 = 1) =>
  publish(topic, qos, 1, { payload, retain: true })

/** Waits for all retained messages. Returns all messages: `payload` came live, `payload*` retained. */
async function allOf(client: Peer): Promise<string[]> {
  // The retained message of this filter comes last.
  subscribe(client, 99, { end: 0 })
  for (let next = 0; ; next++) {
    const { topic, messageId = 0, qos } = await client.next('publish', next)
    if (qos === 1) client.send({ cmd: 'puback', messageId })
    if (topic === 'end') break
  }
  return publishes(client)
    .filter(({ topic }) => topic !== 'end')
    .map(({ payload, retain }) => `${payload}${retain ? '*' : ''}`)
}

async function publisherOf(t: Parameters<typeof peer>[0], broker: Parameters<typeof peer>[1]) {
  const publisher = await peer(t, broker, 'publisher')
  publisher.send(retained('end', 'end'))
  await publisher.next('puback')
  return publisher
}

for (const [name, filter, qos, clean, publishedAt] of [
  ['QoS 0', 'a/b', 0, true, 1],
  ['QoS 1', 'a/b', 1, true, 1],
  ['published at QoS 0', 'a/b', 1, true, 0],
  ['a wildcard', '#', 1, true, 1],
  ['a persistent session', 'a/b', 1, false, 1],
  ['a persistent session and a wildcard', 'a/+', 1, false, 1],
  ['a persistent session at QoS 0', 'a/b', 0, false, 1],
  ['a persistent session, published at QoS 0', 'a/b', 1, false, 0],
] as const) {
  t.test(`what is published right behind SUBSCRIBE comes once: ${name}`, async (t) => {
    const broker = await openBroker(t)
    const publisher = await publisherOf(t, broker)
    for (let attempt = 0; attempt < 40; attempt++) {
      const before = `${attempt} before`
      const behind = `${attempt} behind`
      publisher.send(retained('a/b', before))
      await publisher.next('puback', publisher.packets.filter(({ cmd }) => cmd === 'puback').length)
      const client = await peer(t, broker, `client ${attempt}`, { clean })
      subscribe(client, 1, { [filter]: qos })
      for (let turn = 0; turn < attempt % 4; turn++) await nextTurn()
      publisher.send(retained('a/b', behind, publishedAt))
      while (!publishes(client).some(({ payload }) => String(payload) === behind)) {
        await client.next('publish', publishes(client).length)
      }
      const seen = await allOf(client)
      t.equal(seen.filter((text) => text.startsWith(behind)).length, 1, seen.join())
      t.ok(seen.at(-1)?.startsWith(behind), 'and nothing older follows it')
    }
  })
}

t.test('while a store takes its time', async (t) => {
  const { store, broker } = await openFailing(t)
  const publisher = await publisherOf(t, broker)

  t.test('a persistent session gets what is published before its subscription is stored once', async (t) => {
    const client = await peer(t, broker, 'behind', { clean: false })
    const storing = store.hold(touches('session/'))
    subscribe(client, 1, { a: 1 })
    await storing
    publisher.send(retained('a', 'behind'))
    await publisher.settled()
    store.release()
    t.same(await allOf(client), ['behind'])
  })

  t.test('and what was being stored when it subscribed once, live or retained', async (t) => {
    const client = await peer(t, broker, 'before', { clean: false })
    const other = await subscriber(t, broker, 'other', { b: 1 }, { clean: false })
    const storing = store.hold((changes) => touches('journal/')(changes) || touches('session/')(changes))
    publisher.send(retained('b', 'before'))
    await storing
    subscribe(client, 1, { b: 1 })
    await client.settled()
    store.release()
    await other.next('publish')
    const seen = await allOf(client)
    t.equal(seen.length, 1)
    t.match(seen[0], /^before/)
  })
})

t.test('who comes back and subscribes again gets what is retained again', async (t) => {
  const broker = await openBroker(t)
  const publisher = await publisherOf(t, broker)
  let client = await subscriber(t, broker, 'c', { a: 1 }, { clean: false })
  publisher.send(retained('a', 'newest'))
  t.same((await allOf(client)).at(-1), 'newest')
  client.socket.destroy()
  await client.closed()
  client = await subscriber(t, broker, 'c', { a: 1 }, { clean: false })
  t.same(await allOf(client), ['newest*'])
})

t.test('the same filter again brings what is retained again, whatever came live before', async (t) => {
  const broker = await openBroker(t)
  const publisher = await publisherOf(t, broker)
  for (const clean of [true, false]) {
    const client = await subscriber(t, broker, `again ${clean}`, { [`a/${clean}`]: 1 }, { clean })
    publisher.send(retained(`a/${clean}`, 'live'))
    const { messageId = 0 } = await client.next('publish')
    // While the message is in flight, a persistent session would not get the retained copy.
    client.send({ cmd: 'puback', messageId })
    subscribe(client, 2, { [`a/${clean}`]: 1 })
    t.same(await allOf(client), ['live', 'live*'])
  }
})

t.test(
  'another filter that matches brings what is retained, although the first brought it live',
  async (t) => {
    const broker = await openBroker(t)
    const publisher = await publisherOf(t, broker)
    const client = await subscriber(t, broker, 'c', { 'a/b': 1 })
    publisher.send(retained('a/b', 'live'))
    await client.next('publish')
    subscribe(client, 2, { 'a/+': 1 })
    t.same(await allOf(client), ['live', 'live*'])
  },
)

for (const [qos, publishedAt] of [
  [0, 0],
  [1, 0],
  [1, 1],
] as const) {
  const name = `at QoS ${qos}, published at QoS ${publishedAt}`
  t.test(`who reads slowly gets the newest of each topic, and at most once, ${name}`, async (t) => {
    const broker = await openBroker(t, { limits: { outgoingBuffer: 64 * 1024 } })
    const publisher = await publisherOf(t, broker)
    const topics = Array.from({ length: 200 }, (_, index) => `t/${index}`)
    const value = (text: string) => `${text} ${'x'.repeat(4_000)}`
    for (const topic of topics) publisher.send(retained(topic, value('before')))
    await publisher.next('puback', topics.length)
    const client = await peer(t, broker, 'slow')
    client.socket.pause()
    subscribe(client, 1, { 't/#': qos })
    // By now, the broker has sent the retained messages of some of these topics.
    for (const topic of topics.slice(0, 100)) publisher.send(retained(topic, value('behind'), publishedAt))
    await publisher.settled()
    // `settled` is not enough: the broker answers its PINGREQ while messages are still being stored.
    if (publishedAt === 1) await publisher.next('puback', topics.length + 100)
    client.socket.resume()
    await allOf(client)
    for (const [index, topic] of topics.entries()) {
      const seen = publishes(client).filter((packet) => packet.topic === topic)
      const last = index < 100 ? 'behind' : 'before'
      t.ok(seen.length > 0, topic)
      const texts = seen.map(({ payload }) => String(payload))
      t.equal(new Set(texts).size, texts.length, `${topic}: each value at most once`)
      // Not checked for live messages of QoS 0: the broker drops them while the send buffer of the connection is full.
      if (publishedAt === 1) t.ok(String(seen.at(-1)?.payload).startsWith(last), `${topic}: ${seen.length}`)
    }
  })
}
