import t from 'tap'
import { closesAfter, hex, openBroker, peer, publish, publishes, subscriber, texts } from './peers.ts'

/* Chapter 4 of MQTT 3.1.1: state, delivery, order, topics, errors. */

t.test('a session lasts as long as its connection, however soon it expires', async (t) => {
  const broker = await openBroker(t, { limits: { sessionExpiryMs: 0 } })
  const client = await subscriber(t, broker, 'c', { a: 1 }, { clean: false })
  await broker.broker.sessions.sweep()
  client.send(publish('a', 1))
  await client.next('publish')
  t.equal(texts(client).length, 1)
})

t.test('QoS 1 is sent until it is acknowledged, and then no more', async (t) => {
  const broker = await openBroker(t)
  const client = await subscriber(t, broker, 'c', { a: 1 }, { clean: false })
  client.send(publish('a', 1))
  const { messageId = 0, dup } = await client.next('publish')
  t.equal(dup, false)
  client.socket.destroy()
  const second = await peer(t, broker, 'c', { clean: false })
  t.match(await second.next('publish'), { messageId, dup: true })
  second.send({ cmd: 'puback', messageId })
  await second.settled()
  second.socket.destroy()
  const third = await peer(t, broker, 'c', { clean: false })
  await third.settled()
  t.same(texts(third), [])
})

t.test('a QoS 1 message with the identifier of an acknowledged one is a new message', async (t) => {
  const broker = await openBroker(t)
  const client = await subscriber(t, broker, 'c', { a: 0 })
  client.send(publish('a', 1, 7), publish('a', 1, 7, { dup: true, payload: 'again' }))
  await client.next('puback', 1)
  await client.settled()
  t.same(texts(client), ['a a', 'a again'])
})

t.test('QoS 2 of the broker: PUBLISH until PUBREC, PUBREL until PUBCOMP', async (t) => {
  const broker = await openBroker(t)
  const client = await subscriber(t, broker, 'c', { a: 2 }, { clean: false })
  client.send(publish('a', 2, 3))
  const { messageId = 0 } = await client.next('publish')
  client.socket.destroy()
  const second = await peer(t, broker, 'c', { clean: false })
  t.match(await second.next('publish'), { messageId, dup: true, qos: 2 })
  second.send({ cmd: 'pubrec', messageId })
  await second.next('pubrel')
  second.socket.destroy()
  const third = await peer(t, broker, 'c', { clean: false })
  t.equal((await third.next('pubrel')).messageId, messageId)
  third.send({ cmd: 'pubcomp', messageId })
  await third.settled()
  t.same(texts(third), [], 'no PUBLISH after PUBREC')
  third.socket.destroy()
  const fourth = await peer(t, broker, 'c', { clean: false })
  await fourth.settled()
  t.same(
    fourth.packets.map(({ cmd }) => cmd),
    ['connack', 'pingresp'],
  )
})

t.test('QoS 2 of a client is processed once, over reconnects and restarts', async (t) => {
  const directory = t.testdir()
  const broker = await openBroker(t, { directory })
  await subscriber(t, broker, 'w', { a: 1 }, { clean: false })
  const publisher = await peer(t, broker, 'p', { clean: false })
  publisher.send(publish('a', 2, 9))
  await publisher.next('pubrec')
  publisher.socket.destroy()
  const again = await peer(t, broker, 'p', { clean: false })
  again.send(publish('a', 2, 9, { dup: true }))
  await again.next('pubrec')
  await broker.close()
  const after = await openBroker(t, { directory })
  const third = await peer(t, after, 'p', { clean: false })
  third.send(publish('a', 2, 9, { dup: true }), { cmd: 'pubrel', messageId: 9 })
  await third.next('pubcomp')
  third.send(publish('a', 2, 9, { payload: 'next' }))
  await third.next('pubrec', 1)
  const watcher = await peer(t, after, 'w', { clean: false })
  await watcher.next('publish', 1)
  await watcher.settled()
  t.same(texts(watcher), ['a a', 'a next'])
})

t.test('a message goes to every session with a matching filter, connected or not', async (t) => {
  const broker = await openBroker(t)
  const filters = ['s/a', 's/+', 's/#', '#', '+/a', 'other']
  const sessions = filters.flatMap((filter, index) => [0, 1].map((online) => ({ filter, index, online })))
  for (const { filter, index, online } of sessions) {
    const client = await subscriber(t, broker, `${index}${online}`, { [filter]: 1 }, { clean: false })
    if (online === 0) client.socket.destroy()
  }
  const publisher = await peer(t, broker, 'p')
  publisher.send(publish('s/a', 1))
  await publisher.next('puback')
  for (const { filter, index, online } of sessions) {
    const queued = (await broker.broker.session(`${index}${online}`))?.queued
    t.equal(queued, filter === 'other' ? 0 : 1, `${filter}, online ${online}`)
  }
})

t.test('redelivery keeps the order of the first delivery', async (t) => {
  const broker = await openBroker(t)
  const client = await subscriber(t, broker, 'c', { '#': 2 }, { clean: false })
  for (let id = 1; id <= 30; id++) client.send(publish(`o/${id}`, id % 2 === 0 ? 1 : 2, id))
  await client.next('publish', 29)
  const order = publishes(client).map(({ topic, messageId }) => `${topic} ${messageId}`)
  client.socket.destroy()
  const again = await peer(t, broker, 'c', { clean: false })
  await again.next('publish', 29)
  t.same(
    publishes(again).map(({ topic, messageId }) => `${topic} ${messageId}`),
    order,
  )
})

t.test('messages of one publisher on one topic arrive in its order, at each QoS', async (t) => {
  const broker = await openBroker(t)
  const offline = await subscriber(t, broker, 'offline', { a: 2 }, { clean: false })
  offline.socket.destroy()
  const clients = [
    await subscriber(t, broker, 'clean', { a: 2 }),
    await subscriber(t, broker, 'kept', { a: 2 }, { clean: false }),
  ]
  const publisher = await peer(t, broker, 'p')
  const count = 300
  for (let id = 1; id <= count; id++) {
    publisher.send(publish('a', id % 3 === 0 ? 2 : id % 3 === 1 ? 1 : 0, id, { payload: `${id}` }))
  }
  await publisher.next('pubrec', 99)
  await publisher.settled()
  for (const cmd of ['puback', 'pubrec']) {
    const answered = publisher.packets.flatMap((packet) =>
      packet.cmd === cmd && 'messageId' in packet ? [Number(packet.messageId)] : [],
    )
    t.same(
      answered,
      answered.toSorted((a, b) => a - b),
      `each ${cmd} in it`,
    )
  }
  clients.push(await peer(t, broker, 'offline', { clean: false }))
  for (const client of clients) {
    for (let index = 0; index < (client === clients[2] ? 200 : count); index++) {
      const { qos, messageId = 0 } = await client.next('publish', index)
      if (qos === 1) client.send({ cmd: 'puback', messageId })
      if (qos === 2) client.send({ cmd: 'pubrec', messageId }, { cmd: 'pubcomp', messageId })
    }
    for (const qos of [0, 1, 2]) {
      const numbers = publishes(client).flatMap((packet) =>
        packet.qos === qos ? [Number(packet.payload)] : [],
      )
      t.same(
        numbers,
        numbers.toSorted((a, b) => a - b),
        `QoS ${qos}`,
      )
    }
  }
})

t.test('wildcards match as the specification says', async (t) => {
  const broker = await openBroker(t)
  const table: [filter: string, matches: string[], not: string[]][] = [
    ['sport/tennis/player1/#', ['sport/tennis/player1', 'sport/tennis/player1/ranking/x'], ['sport/tennis']],
    ['sport/#', ['sport'], ['sports']],
    ['#', ['a', '/a', 'a/b/c'], ['$SYS/a', '$a']],
    ['+/monitor/Clients', ['x/monitor/Clients'], ['$SYS/monitor/Clients']],
    ['$SYS/#', ['$SYS/a', '$SYS'], ['SYS/a']],
    ['sport/tennis/+', ['sport/tennis/player1', 'sport/tennis/'], ['sport/tennis/player1/ranking']],
    ['sport/+', ['sport/'], ['sport']],
    ['+/+', ['/finance', 'a/b'], ['finance', 'a/b/c']],
    ['/+', ['/finance'], ['finance', 'x/finance']],
    ['+', ['finance'], ['/finance', '$x']],
    ['/', ['/'], ['//', 'a/']],
    ['A', ['A'], ['a']],
    ['Ä', ['Ä'], ['A\u0308']],
    ['a b', ['a b'], ['a  b']],
  ]
  for (const [index, [filter, matches, not]] of table.entries()) {
    for (const clean of [true, false]) {
      const client = await subscriber(t, broker, `${index}${clean}`, { [filter]: 1 }, { clean })
      for (const topic of [...not, ...matches]) client.send(publish(topic, 0, 0))
      await client.next('publish', matches.length - 1)
      await client.settled()
      t.same(
        publishes(client).map(({ topic }) => topic),
        matches,
        `${filter}, clean ${clean}`,
      )
      client.send({ cmd: 'unsubscribe', messageId: 2, unsubscriptions: [filter] })
      await client.next('unsuback')
    }
  }
})

t.test('a malformed filter is refused alone', async (t) => {
  const broker = await openBroker(t)
  for (const clean of [true, false]) {
    const malformed = ['a/#/b', 'a#', '#a', 'a/b#', 'a+', '+a', 'a/+b', '++', '#/', 'a/b+/c', 'ab/+e']
    const client = await peer(t, broker, `m${clean}`, { clean })
    const subscriptions = [...malformed, 'good/#', '+/good'].map((topic) => ({ topic, qos: 1 as const }))
    client.send({ cmd: 'subscribe', messageId: 1, subscriptions })
    t.same((await client.next('suback')).granted, [...malformed.map(() => 128), 1, 1])
    client.socket.destroy()
    const again = await peer(t, broker, `m${clean}`, { clean })
    await again.settled()
    t.pass('and locks nobody out')
  }
})

t.test('a topic of 65,535 bytes is a topic', async (t) => {
  const broker = await openBroker(t)
  const topic = 'x'.repeat(65_535)
  const client = await subscriber(t, broker, 'c', { [topic]: 1 }, { clean: false })
  client.send(publish(topic, 1, 1, { retain: true, payload: 'long' }))
  const live = await client.next('publish')
  t.equal(live.topic.length, 65_535)
})

t.test('what the broker cannot store closes the connection', async (t) => {
  let failing = false
  const broker = await openBroker(t, {
    wrapStore: (store) => ({
      ...store,
      commit: (changes) => (failing ? Promise.reject(new Error('disk full')) : store.commit(changes)),
    }),
  })
  const client = await peer(t, broker, 'c', { clean: false })
  failing = true
  await closesAfter(t, client, hex('82 06 0001 0001 61 01'), 'a SUBSCRIBE')
  failing = false
  const again = await peer(t, broker, 'c', { clean: false })
  await again.settled()
})
