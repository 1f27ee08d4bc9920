import { generate } from 'mqtt-packet'
import t from 'tap'
import {
  closesAfter,
  hex,
  openBroker,
  packetsThatClose,
  peer,
  publish,
  publishes,
  subscriber,
  texts,
} from './peers.ts'

/* MQTT 3.1.1 §3.3 to §3.7: PUBLISH and its acknowledgements. */

t.test('DUP of the publisher is not passed on', async (t) => {
  const broker = await openBroker(t)
  const client = await subscriber(t, broker, 'c', { a: 2 })
  client.send(publish('a', 1, 1, { dup: true }), publish('a', 2, 2, { dup: true }))
  await client.next('publish', 1)
  t.same(
    publishes(client).map(({ dup }) => dup),
    [false, false],
  )
})

packetsThatClose('DUP at QoS 0 and QoS 3 close the connection', [
  ['DUP at QoS 0', '38 03 0001 61'],
  ['QoS 3', '36 05 0001 61 0001'],
  ['QoS 3 with DUP', '3e 05 0001 61 0001'],
])

t.test('a retained message is stored with its QoS and sent to each new subscription', async (t) => {
  const broker = await openBroker(t)
  const publisher = await peer(t, broker, 'p')
  for (const qos of [0, 1, 2] as const) publisher.send(publish(`r/${qos}`, qos, qos, { retain: true }))
  await publisher.next('pubrec')
  await publisher.settled()
  const client = await subscriber(t, broker, 'c', { 'r/+': 2 })
  await client.next('publish', 2)
  t.same(
    publishes(client).map(({ topic, qos, retain }) => [topic, qos, retain]),
    [
      ['r/0', 0, true],
      ['r/1', 1, true],
      ['r/2', 2, true],
    ],
  )
})

t.test('a later retained message replaces the one before, at any QoS', async (t) => {
  const broker = await openBroker(t)
  const publisher = await peer(t, broker, 'p')
  publisher.send(publish('r', 1, 1, { retain: true, payload: 'first' }))
  publisher.send(publish('r', 0, 0, { retain: true, payload: 'second' }))
  await publisher.settled()
  await publisher.next('puback')
  const client = await subscriber(t, broker, 'c', { r: 1 })
  await client.next('publish')
  await client.settled()
  t.same(texts(client), ['r second'])
})

t.test('RETAIN is 0 for an established subscription', async (t) => {
  const broker = await openBroker(t)
  for (const clean of [true, false]) {
    const client = await subscriber(t, broker, `c${clean}`, { [`r/${clean}`]: 1 }, { clean })
    await client.settled()
    client.send(publish(`r/${clean}`, 1, 1, { retain: true }))
    t.equal((await client.next('publish')).retain, false, `clean ${clean}`)
  }
})

t.test('an empty retained message is delivered, removes the one before and is not kept', async (t) => {
  const broker = await openBroker(t)
  const client = await subscriber(t, broker, 'c', { r: 1 })
  client.send(publish('r', 1, 1, { retain: true }))
  await client.next('puback')
  client.send(publish('r', 1, 2, { retain: true, payload: '' }))
  await client.next('publish', 1)
  t.same(texts(client), ['r r', 'r '])
  const late = await subscriber(t, broker, 'l', { r: 1 })
  await late.settled()
  t.same(texts(late), [])
  t.same(await broker.broker.retainedList('#'), [])
})

t.test('a message without RETAIN leaves the retained one alone', async (t) => {
  const broker = await openBroker(t)
  const publisher = await peer(t, broker, 'p')
  publisher.send(publish('r', 1, 1, { retain: true, payload: 'kept' }))
  publisher.send(publish('r', 1, 2, { payload: 'passing' }), publish('r', 1, 3, { payload: '' }))
  await publisher.next('puback', 2)
  const late = await subscriber(t, broker, 'l', { r: 1 })
  await late.next('publish')
  await late.settled()
  t.same(texts(late), ['r kept'])
})

packetsThatClose('a topic with a wildcard, or none, closes the connection', [
  ['#', '30 03 0001 23'],
  ['a/+/b', '30 07 0005 612f2b2f62'],
  ['empty', '30 02 0000'],
  ['longer than the packet', '30 03 0009 61'],
  ['nothing at all', '30 00'],
])

t.test('each QoS has its answer', async (t) => {
  const broker = await openBroker(t)
  const client = await peer(t, broker, 'c')
  client.send(publish('a', 0), publish('a', 1, 1), publish('a', 2, 2))
  await client.next('pubrec')
  for await (const [key] of broker.store.range('incoming/')) t.fail(`${key} of a clean session is stored`)
  client.send({ cmd: 'pubrel', messageId: 2 })
  await client.next('pubcomp')
  await client.settled()
  t.same(
    client.packets.map(({ cmd }) => cmd),
    ['connack', 'puback', 'pubrec', 'pubcomp', 'pingresp'],
  )
})

t.test('overlapping subscriptions deliver at their highest QoS', async (t) => {
  const broker = await openBroker(t)
  for (const clean of [true, false]) {
    const client = await subscriber(t, broker, `c${clean}`, { 'o/#': 0, 'o/a': 2, '+/a': 1 }, { clean })
    client.send(publish('o/a', 2, 1))
    t.equal((await client.next('publish')).qos, 2)
    await client.settled()
    t.equal(publishes(client).length, 1, 'once')
  }
})

t.test('a PUBREL for an unknown identifier is answered, an early one waits for its message', async (t) => {
  const broker = await openBroker(t)
  const client = await subscriber(t, broker, 'c', { a: 0 })
  client.send({ cmd: 'pubrel', messageId: 77 })
  t.equal((await client.next('pubcomp')).messageId, 77)
  client.send(publish('a', 2, 5), generate({ cmd: 'pubrel', messageId: 5 }))
  await client.next('pubcomp', 1)
  client.send(publish('a', 2, 5, { payload: 'another' }))
  await client.next('pubrec', 1)
  await client.settled()
  t.same(texts(client), ['a a', 'a another'], 'its identifier is free')
})

t.test('a PUBREC for an unknown identifier is answered with PUBREL', async (t) => {
  const broker = await openBroker(t)
  const client = await peer(t, broker, 'c')
  client.send({ cmd: 'pubrec', messageId: 99 })
  t.equal((await client.next('pubrel')).messageId, 99)
})

t.test('an acknowledgement that does not fit closes the connection', async (t) => {
  const broker = await openBroker(t)
  const table: [qos: 1 | 2, bytes: string, what: string][] = [
    [1, '50 02', 'PUBREC at QoS 1'],
    [1, '70 02', 'PUBCOMP at QoS 1'],
    [2, '40 02', 'PUBACK at QoS 2'],
    [2, '70 02', 'PUBCOMP before PUBREC'],
  ]
  for (const clean of [true, false]) {
    for (const [qos, bytes, what] of table) {
      const client = await subscriber(t, broker, `${what} ${clean}`, { [what]: qos }, { clean })
      client.send(publish(what, qos, 9))
      const { messageId = 0 } = await client.next('publish')
      await client.next(qos === 1 ? 'puback' : 'pubrec')
      const packet = Buffer.concat([hex(bytes), Buffer.of(messageId >> 8, messageId & 0xff)])
      await closesAfter(t, client, packet, `${what}, clean ${clean}`)
    }
  }
})

t.test('an acknowledgement of nothing is ignored', async (t) => {
  const broker = await openBroker(t)
  const client = await peer(t, broker, 'c')
  client.send({ cmd: 'puback', messageId: 5 }, { cmd: 'pubcomp', messageId: 6 })
  await client.settled()
  t.notOk(client.isClosed)
})
