import { generate, type Packet } from 'mqtt-packet'
import t from 'tap'
import { acknowledgeAll } from '../broker/session/crashing-hub.ts'
import {
  closesAfter,
  hex,
  openBroker,
  packetsThatClose,
  peer,
  publish,
  publishes,
  subscribe,
  subscriber,
  texts,
} from './peers.ts'

/* MQTT 3.1.1 §3.8 to §3.14: SUBSCRIBE, UNSUBSCRIBE, PINGREQ, DISCONNECT. */

packetsThatClose('a SUBSCRIBE that is malformed closes the connection', [
  ['flags', '80 06 0001 0001 61 00'],
  ['no filter', '82 02 0001'],
  ['QoS 3', '82 06 0001 0001 61 03'],
  ['reserved bits', '82 06 0001 0001 61 04'],
  ['the second one with reserved bits', '82 0a 0001 0001 61 00 0001 62 80'],
  ['no QoS', '82 05 0001 0001 61'],
  ['empty filter', '82 05 0001 0000 00'],
  ['not UTF-8', '82 06 0001 0001 80 00'],
])

t.test('every filter of a SUBSCRIBE gets one return code, in its order', async (t) => {
  const broker = await openBroker(t, {
    access: {
      maySubscribe: (_who, filter) =>
        filter.startsWith('no') ? { allowed: false, reason: 'no' } : { allowed: true },
    },
  })
  for (const clean of [true, false]) {
    const client = await peer(t, broker, `c${clean}`, { clean })
    const filters: [topic: string, qos: 0 | 1 | 2, code: number][] = [
      ['a', 2, 2],
      ['no', 1, 128],
      ['a', 0, 0],
      ['b/#/c', 1, 128],
      ['b', 1, 1],
      ['b+', 1, 128],
      ['a', 1, 1],
      ['no', 2, 128],
      ['b', 1, 1],
    ]
    const subscriptions = filters.map(([topic, qos]) => ({ topic, qos }))
    client.send({ cmd: 'subscribe', messageId: 7, subscriptions })
    const suback = await client.next('suback')
    t.equal(suback.messageId, 7)
    t.same(
      suback.granted,
      filters.map(([, , code]) => code),
      `clean ${clean}`,
    )
    const granted = broker.broker.sessions.get(`c${clean}`)?.subscriptions ?? []
    t.same([...granted].map(([filter, { qos }]) => [filter, qos]).sort(), [
      ['a', 1],
      ['b', 1],
    ])
  }
})

t.test('a refused filter brings nothing, live or retained, now or later', async (t) => {
  const directory = t.testdir()
  let allowed = true
  const access = {
    maySubscribe: (_who: unknown, filter: string) =>
      filter === 'secret' && !allowed
        ? ({ allowed: false, reason: 'no' } as const)
        : ({ allowed: true } as const),
  }
  const broker = await openBroker(t, { directory, access })
  const client = await subscriber(t, broker, 'c', { secret: 1, open: 1 }, { clean: false })
  client.socket.destroy()
  allowed = false
  const publisher = await peer(t, broker, 'p')
  const again = await peer(t, broker, 'c', { clean: false })
  await again.settled()
  publisher.send(publish('secret', 1, 1, { retain: true }), publish('open', 1, 2))
  await again.next('publish')
  subscribe(again, 2, { secret: 1 })
  t.same((await again.next('suback')).granted, [128])
  await again.settled()
  t.same(texts(again), ['open open'])
  allowed = true
  again.socket.destroy()
  const third = await peer(t, broker, 'c', { clean: false })
  await third.settled()
  t.same([...(broker.broker.sessions.get('c')?.subscriptions.keys() ?? [])], ['open'], 'taken away for good')
})

t.test('the same filter again replaces the subscription and sends retained messages again', async (t) => {
  const broker = await openBroker(t)
  for (const clean of [true, false]) {
    const client = await subscriber(t, broker, `c${clean}`, { [`r/${clean}`]: 2 }, { clean })
    client.send(publish(`r/${clean}`, 1, 1, { retain: true }))
    await client.next('publish')
    subscribe(client, 2, { [`r/${clean}`]: 0 })
    t.same((await client.next('suback', 1)).granted, [0])
    t.match(await client.next('publish', 1), { retain: true, qos: 0 })
    client.send(publish(`r/${clean}`, 1, 2))
    t.match(await client.next('publish', 2), { retain: false, qos: 0 })
    await client.settled()
    t.equal(publishes(client).length, 3, 'one subscription')
  }
})

t.test('the delivered QoS is the lower one of published and granted', async (t) => {
  const broker = await openBroker(t)
  for (const granted of [0, 1, 2] as const) {
    const client = await subscriber(t, broker, 'c', { q: granted })
    for (const qos of [0, 1, 2] as const) client.send(publish('q', qos, 1 + qos))
    await client.next('publish', 2)
    t.same(
      publishes(client)
        .map(({ qos }) => qos)
        .sort(),
      [0, 1, 2].map((qos) => Math.min(qos, granted)),
    )
  }
})

packetsThatClose('UNSUBSCRIBE that is malformed closes the connection', [
  ['flags', 'a0 05 0001 0001 61'],
  ['no filter', 'a2 02 0001'],
  ['not UTF-8', 'a2 05 0001 0001 80'],
  ['a gap', 'a2 08 0001 0001 61 0002 61'],
  ['empty filter', 'a2 04 0001 0000'],
])

t.test('UNSUBSCRIBE ends exactly the filters it names, and is always answered', async (t) => {
  const broker = await openBroker(t)
  for (const clean of [true, false]) {
    const client = await subscriber(t, broker, `c${clean}`, { 'u/+': 1, 'u/a': 1, 'v/#': 1 }, { clean })
    client.send({
      cmd: 'unsubscribe',
      messageId: 3,
      unsubscriptions: ['u/b', 'nothing', 'u/#', '#', 'a/#/b'],
    })
    t.equal((await client.next('unsuback')).messageId, 3)
    client.send(publish('u/a', 1, 1))
    await client.next('publish')
    client.send({ cmd: 'unsubscribe', messageId: 4, unsubscriptions: ['u/a', 'u/+', 'u/a'] })
    t.equal((await client.next('unsuback', 1)).messageId, 4)
    client.send(publish('u/a', 1, 2), publish('v/a', 1, 3))
    await client.next('publish', 1)
    await client.settled()
    t.same(texts(client), ['u/a u/a', 'v/a v/a'], `clean ${clean}`)
    t.equal(client.packets.filter(({ cmd }) => cmd === 'unsuback').length, 2)
  }
})

t.test('what was begun is finished after UNSUBSCRIBE', async (t) => {
  const broker = await openBroker(t)
  for (const clean of [true, false]) {
    const client = await subscriber(t, broker, `c${clean}`, { a: 2 }, { clean })
    client.send(publish('a', 2, 1))
    const { messageId = 0 } = await client.next('publish')
    client.send({ cmd: 'unsubscribe', messageId: 2, unsubscriptions: ['a'] })
    await client.next('unsuback')
    client.send({ cmd: 'pubrec', messageId })
    t.equal((await client.next('pubrel')).messageId, messageId)
    client.send({ cmd: 'pubcomp', messageId })
    await client.settled()
    t.equal(broker.broker.sessions.get(`c${clean}`)?.inFlight.size, 0)
  }
})

t.test('retained messages stop with UNSUBSCRIBE', async (t) => {
  const broker = await openBroker(t)
  const publisher = await peer(t, broker, 'p')
  for (let id = 1; id <= 2000; id++) publisher.send(publish(`many/${id}`, 1, id, { retain: true }))
  await publisher.next('puback', 1999)
  for (const clean of [true, false]) {
    const client = await peer(t, broker, `c${clean}`, { clean })
    subscribe(client, 1, { 'many/#': 1 })
    await client.next('publish', 40)
    client.send({ cmd: 'unsubscribe', messageId: 2, unsubscriptions: ['many/#'] })
    await client.next('unsuback')
    const sent = publishes(client).length
    for (const { messageId = 0 } of publishes(client)) client.send({ cmd: 'puback', messageId })
    await client.settled()
    t.ok(sent < 200, `${sent} of 2000`)
    t.ok(publishes(client).length <= sent + 50, 'nothing but what was begun')
  }
})

t.test('an UNSUBSCRIBE lasts beyond the connection', async (t) => {
  const broker = await openBroker(t)
  const client = await subscriber(t, broker, 'c', { a: 1, b: 1 }, { clean: false })
  client.send({ cmd: 'unsubscribe', messageId: 2, unsubscriptions: ['a'] })
  await client.next('unsuback')
  client.socket.destroy()
  const again = await peer(t, broker, 'c', { clean: false })
  again.send(publish('a', 1, 1), publish('b', 1, 2))
  await again.next('publish')
  await again.settled()
  t.same(texts(again), ['b b'])
})

t.test('a SUBSCRIBE begins anew behind an UNSUBSCRIBE, also before its UNSUBACK', async (t) => {
  const broker = await openBroker(t, { limits: { inFlightWindow: 2 } })
  const publisher = await peer(t, broker, 'p')
  for (const isPipelined of [false, true]) {
    const clientId = `c${isPipelined}`
    const first = await subscriber(t, broker, clientId, { a: 1 }, { clean: false })
    first.socket.destroy()
    await first.closed()
    for (let id = 1; id <= 10; id++) publisher.send(publish('a', 1, id, { payload: `old ${id}` }))
    await publisher.next('puback', isPipelined ? 20 : 9)
    const client = await peer(t, broker, clientId, { clean: false })
    const end: Packet = { cmd: 'unsubscribe', messageId: 2, unsubscriptions: ['a'] }
    const begin: Packet = { cmd: 'subscribe', messageId: 3, subscriptions: [{ topic: 'a', qos: 1 }] }
    if (isPipelined) client.send(end, begin)
    else {
      client.send(end)
      await client.next('unsuback')
      client.send(begin)
    }
    await client.next('suback')
    acknowledgeAll(client)
    publisher.send(publish('a', 1, 11, { payload: 'new' }))
    await publisher.next('puback', isPipelined ? 21 : 10)
    while (!texts(client).includes('a new')) await client.settled()
    t.ok(texts(client).length <= 3, `${texts(client).length} messages: what was begun, and the new one`)
  }
})

t.test('PINGREQ is answered', async (t) => {
  const broker = await openBroker(t)
  const client = await peer(t, broker, 'c')
  client.send(generate({ cmd: 'pingreq' }), generate({ cmd: 'pingreq' }))
  await client.next('pingresp', 1)
  await closesAfter(t, client, hex('c0 01 00'), 'unless it has a body')
})

t.test('DISCONNECT closes the connection, and nothing behind it counts', async (t) => {
  const broker = await openBroker(t)
  const watcher = await subscriber(t, broker, 'w', { '#': 0 })
  const client = await peer(t, broker, 'c')
  client.send(publish('before', 0), generate({ cmd: 'disconnect' }), publish('behind', 0))
  await client.closed()
  watcher.send(publish('end', 0))
  await watcher.next('publish', 1)
  t.same(texts(watcher), ['before before', 'end end'])
  await closesAfter(t, await peer(t, broker, 'd'), hex('e1 00'), 'with flags it is malformed')
})

t.test('a large SUBSCRIBE is answered whole', async (t) => {
  const broker = await openBroker(t, { limits: { maxSubscriptions: 3000 } })
  const client = await peer(t, broker, 'c', { clean: false })
  const filters = (from: number, count: number) =>
    Array.from({ length: count }, (_, index) => ({ topic: `t/${from + index}`, qos: 1 as const }))
  client.send({ cmd: 'subscribe', messageId: 1, subscriptions: filters(0, 2000) })
  client.send({ cmd: 'subscribe', messageId: 2, subscriptions: filters(2000, 3000) })
  t.ok((await client.next('suback')).granted.every((code) => code === 1))
  const { granted } = await client.next('suback', 1)
  t.equal(granted.filter((code) => code === 1).length, 1000)
  t.equal(granted.filter((code) => code === 128).length, 2000)
})
