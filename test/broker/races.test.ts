import { generate } from 'mqtt-packet'
import t, { type Test } from 'tap'
import {
  openBroker,
  openFailing,
  peer,
  publish,
  publishes,
  subscribe,
  subscriber,
  texts,
} from '../conformance/peers.ts'
import { rawClient } from '../raw-client.ts'
import { until } from '../until.ts'
import { createFailingStore, touches } from './failing-store.ts'

/* Races: for example, a session returns while a message for it is being stored. */

t.test('a message that is being stored while its session comes back is delivered', async (t) => {
  const { store, broker } = await openFailing(t)
  const before = await subscriber(t, broker, 'c', { a: 1 }, { clean: false })
  before.socket.destroy()
  await before.closed()
  const publisher = await peer(t, broker, 'p')
  const storing = store.hold(touches('journal/'))
  publisher.send(publish('a', 1))
  await storing
  const client = await peer(t, broker, 'c', { clean: false })
  await client.settled()
  store.release()
  await publisher.next('puback')
  t.equal((await client.next('publish')).topic, 'a')
  t.equal(await dropped(broker), 0)
})

t.test('messages that are being stored while the queue is sent keep their order', async (t) => {
  const { store, broker } = await openFailing(t)
  const first = await subscriber(t, broker, 'c', { '#': 1 }, { clean: false })
  first.socket.destroy()
  await first.closed()
  const publisher = await peer(t, broker, 'p')
  for (let id = 1; id <= 150; id++) publisher.send(publish(`${id}`, 1, id))
  await publisher.next('puback', 149)
  const client = await peer(t, broker, 'c', { clean: false })
  await client.next('publish', 99)
  const storing = store.hold(touches('journal/'))
  for (let id = 151; id <= 160; id++) publisher.send(publish(`${id}`, 1, id))
  await storing
  for (let index = 0; index < 150; index++) {
    const { messageId = 0 } = await client.next('publish', index)
    client.send({ cmd: 'puback', messageId })
  }
  await client.settled()
  store.release()
  await client.next('publish', 159)
  t.same(
    publishes(client).map(({ topic }) => Number(topic)),
    Array.from({ length: 160 }, (_, index) => index + 1),
  )
  t.equal(await dropped(broker), 0)
})

t.test('a QoS 2 message is processed once when its client is taken over meanwhile', async (t) => {
  const { store, watcher, second } = await takenOver(t)
  second.send(publish('a', 2, 5, { dup: true }))
  await second.settled()
  store.release()
  await second.next('pubrec')
  await watcher.settled()
  t.same(texts(watcher), ['a a'])
})

t.test('a QoS 2 message that was not stored is new when it comes to the next connection', async (t) => {
  const { store, watcher, second } = await takenOver(t)
  store.fail(touches('incoming/'))
  store.release()
  await until(() => store.refused === 1)
  store.heal()
  second.send(publish('a', 2, 5, { dup: true }))
  await second.next('pubrec')
  await watcher.settled()
  t.same(texts(watcher), ['a a'])
})

t.test('a QoS 2 message is released when it is stored, and its identifier is free then', async (t) => {
  const { store, watcher, second } = await takenOver(t)
  second.send({ cmd: 'pubrel', messageId: 5 })
  await second.settled()
  t.notOk(second.packets.some(({ cmd }) => cmd === 'pubcomp'))
  store.release()
  await second.next('pubcomp')
  second.send(publish('a', 2, 5))
  await second.next('pubrec')
  await watcher.settled()
  t.same(texts(watcher), ['a a', 'a a'])
})

t.test('a client whose client id is banned during its log-in gets no CONNACK', async (t) => {
  const { store, broker } = await openFailing(t)
  const client = await heldLogIn(t, broker, store)
  broker.broker.endBanned((_username, clientId) => clientId === 'c')
  store.release()
  await client.closed()
  t.same(client.packets, [])
})

t.test('a client whose credential is revoked as soon as it was found gets no CONNACK', async (t) => {
  const broker = await openBroker(t, {
    access: {
      authenticate() {
        queueMicrotask(() => broker.broker.disconnectUser('everybody'))
        return broker.everybody
      },
    },
  })
  const client = await rawClient(t, broker.port)
  client.send(connect('c', { username: 'everybody', password: 'secret' }))
  await client.closed()
  t.same(client.packets, [])
})

t.test('a client that leaves during its log-in blocks its client id for nobody', async (t) => {
  const { store, broker } = await openFailing(t)
  const first = await heldLogIn(t, broker, store)
  const waiting = await rawClient(t, broker.port)
  waiting.send(connect('c'))
  await openConnections(broker, 2)
  waiting.socket.destroy()
  await gone(broker, 1)
  first.socket.destroy()
  await gone(broker)
  store.fail(touches('session/'))
  store.release()
  await new Promise((resolve) => setImmediate(resolve))
  store.heal()
  const third = await rawClient(t, broker.port)
  t.equal((await third.connect({ clientId: 'c', clean: false })).returnCode, 0)
})

t.test(
  'a will is not published when its client left before the CONNACK, not even after a restart',
  async (t) => {
    const directory = t.testdir()
    const store = createFailingStore()
    const broker = await openBroker(t, { directory, wrapStore: store.wrap })
    const watcher = await subscriber(t, broker, 'w', { will: 1 }, { clean: false })
    const storing = store.hold(touches('will/'))
    const client = await rawClient(t, broker.port)
    const will = { topic: 'will', payload: Buffer.from('gone'), qos: 1 as const, retain: false }
    client.send(connect('c', { will }))
    await storing
    client.socket.destroy()
    await client.closed()
    await gone(broker, 1)
    store.release()
    await watcher.settled()
    await broker.close()
    const after = await openBroker(t, { directory })
    t.equal((await after.broker.session('w'))?.queued, 0)
  },
)

t.test('a log-in that fails leaves the session to the one that came behind it', async (t) => {
  const { store, broker } = await openFailing(t)
  let logIns = 0
  store.fail((changes) => touches('session/')(changes) && ++logIns === 1)
  const first = await heldLogIn(t, broker, store)
  first.socket.destroy()
  await gone(broker)
  const second = await rawClient(t, broker.port)
  second.send(connect('c'))
  await openConnections(broker, 1)
  store.release()
  await second.next('connack')
  subscribe(second, 1, { a: 1 })
  await second.next('suback')
  second.send(publish('a', 1))
  await second.next('publish')
  t.ok(broker.broker.sessions.get('c'), 'it is still known')
})

t.test('a log-in that its client gave up leaves the session to the one that came behind it', async (t) => {
  const { store, broker } = await openFailing(t)
  const first = await heldLogIn(t, broker, store)
  first.socket.destroy()
  await gone(broker)
  const second = await rawClient(t, broker.port)
  second.send(connect('c'))
  await openConnections(broker, 1)
  store.release()
  await second.next('connack')
  await second.settled()
  t.ok(await broker.broker.hasSession('c'), 'it is known')
  t.ok(await broker.store.get('session/c'), 'and stored')
  t.match(await broker.broker.session('c'), { clientId: 'c', connected: true })
  subscribe(second, 1, { a: 1 })
  await second.next('suback')
  t.ok(await broker.store.get('session/c'), 'and stored')
})

t.test('a clean log-in waits for the one in front of it, also where that client has gone', async (t) => {
  const { store, broker, logIns } = await openCounting(t)
  const storing = store.hold(touches('session/'))
  const first = await rawClient(t, broker.port)
  first.send(connect('c', login))
  await storing
  first.socket.destroy()
  await gone(broker)
  const second = await rawClient(t, broker.port)
  second.send(connect('c', { ...login, clean: true }))
  await until(() => logIns() === 2)
  // By itself, the clean log-in would not wait for the store. It must wait for the first log-in, which waits for the
  // store.
  await new Promise((resolve) => setImmediate(resolve))
  store.release()
  t.match(await second.next('connack'), { returnCode: 0, sessionPresent: false })
  subscribe(second, 1, { a: 1 })
  await second.next('suback')
  second.send(publish('a', 1))
  t.equal((await second.next('publish')).topic, 'a')
  t.match(await broker.broker.session('c'), { clientId: 'c', connected: true })
  t.equal(await broker.store.get('session/c'), undefined, 'nothing of the first is left')
})

t.test('a revocation finds clients that wait for their log-in', async (t) => {
  const { store, broker, logIns } = await openCounting(t)
  const storing = store.hold(touches('session/'))
  const clients = await Promise.all([1, 2, 3].map(() => rawClient(t, broker.port)))
  for (const client of clients) client.send(connect('c', login))
  await storing
  await until(() => logIns() === 3)
  broker.broker.disconnectUser('everybody')
  store.release()
  await Promise.all(clients.map((client) => client.closed()))
  await gone(broker)
  t.same(await broker.broker.clients(), [])
})

t.test('a dropped session takes nothing more in', async (t) => {
  const { store, broker } = await openFailing(t)
  const client = await subscriber(t, broker, 'c', { a: 1 }, { clean: false })
  const storing = store.hold(touches('session/'))
  const dropping = broker.broker.dropSession('c')
  await storing
  subscribe(client, 2, { b: 1 })
  await client.closed()
  store.release()
  t.equal(await dropping, true)
  const publisher = await peer(t, broker, 'p')
  publisher.send(publish('a', 1, 1), publish('b', 1, 2))
  await publisher.next('puback', 1)
  const next = await rawClient(t, broker.port)
  next.send(connect('c'))
  t.equal((await next.next('connack')).sessionPresent, false)
  await next.settled()
  t.same(texts(next), [])
})

t.test('received identifiers of a dropped session mean nothing to the next one', async (t) => {
  const directory = t.testdir()
  const store = createFailingStore()
  const broker = await openBroker(t, { directory, wrapStore: store.wrap })
  const client = await peer(t, broker, 'p', { clean: false })
  const storing = store.hold(touches('incoming/'))
  client.send(publish('a', 2, 5))
  await storing
  await broker.broker.dropSession('p')
  store.release()
  const next = await peer(t, broker, 'p', { clean: false })
  await next.settled()
  await broker.close()
  const after = await openBroker(t, { directory })
  const watcher = await subscriber(t, after, 'w', { a: 0 })
  const again = await peer(t, after, 'p', { clean: false })
  again.send(publish('a', 2, 5, { payload: 'new' }))
  await again.next('pubrec')
  await watcher.settled()
  t.same(texts(watcher), ['a new'])
})

t.test('a session that comes back at the moment of its expiry is resumed or new, and works', async (t) => {
  const { store, broker } = await openFailing(t, { limits: { sessionExpiryMs: 0 } })
  const before = await subscriber(t, broker, 'c', { a: 1 }, { clean: false })
  before.socket.destroy()
  await before.closed()
  while (!(await broker.broker.session('c'))?.expiresAt) await new Promise((resolve) => setImmediate(resolve))
  const storing = store.hold(touches('session/'))
  const sweeping = broker.broker.sessions.sweep()
  await storing
  const client = await rawClient(t, broker.port)
  client.send(connect('c'))
  store.release()
  t.equal((await client.next('connack')).sessionPresent, false)
  t.equal(await sweeping, 1)
  subscribe(client, 1, { a: 1 })
  await client.next('suback')
  client.send(publish('a', 1))
  await client.next('publish')
  t.equal(await broker.broker.sessions.sweep(), 0)
})

t.test('a reconnect during redelivery starts a new one, in order', async (t) => {
  const broker = await openBroker(t)
  const first = await subscriber(t, broker, 'c', { '#': 1 }, { clean: false })
  first.socket.destroy()
  await first.closed()
  const publisher = await peer(t, broker, 'p')
  for (let id = 1; id <= 300; id++) publisher.send(publish(`${id}`, 1, id))
  await publisher.next('puback', 299)
  let client = await peer(t, broker, 'c', { clean: false })
  for (let round = 0; round < 20; round++) {
    client = await peer(t, broker, 'c', { clean: false })
    if (round % 2 === 0) await client.next('publish', round)
  }
  const seen: number[] = []
  for (let index = 0; index < 300; index++) {
    const { topic, messageId = 0 } = await client.next('publish', index)
    seen.push(Number(topic))
    client.send({ cmd: 'puback', messageId })
  }
  t.same(
    seen,
    Array.from({ length: 300 }, (_, index) => index + 1),
  )
})

t.test('what was sent before the end of a connection counts, also above the publish rate', async (t) => {
  const broker = await openBroker(t, { limits: { publishRate: 500 } })
  const watcher = await subscriber(t, broker, 'w', { '#': 0 })
  const count = 1200
  const packets = Array.from({ length: count }, (_, index) => generate(publish(`${index}`, 0)))
  const client = await rawClient(t, broker.port)
  client.send(connect('p', { clean: true }), ...packets, generate({ cmd: 'disconnect' }))
  client.socket.end()
  await watcher.next('publish', count - 1)
  t.same(
    publishes(watcher).map(({ topic }) => topic),
    Array.from({ length: count }, (_, index) => `${index}`),
  )
})

t.test('a large packet right behind the CONNECT waits for the log-in', async (t) => {
  const broker = await openBroker(t, { limits: { maxConnectPacket: 1000 } })
  const client = await rawClient(t, broker.port)
  client.send(connect('p'), publish('a', 1, 1, { payload: 'x'.repeat(300_000) }))
  await client.next('puback')
})

t.test('a slow store does not run out the keep alive', async (t) => {
  const { store, broker } = await openFailing(t, { limits: { maxPacket: 2_000_000 } })
  await subscriber(t, broker, 'w', { a: 1 }, { clean: false })
  const publisher = await peer(t, broker, 'p', { keepalive: 1 })
  const idle = await peer(t, broker, 'idle', { keepalive: 2 })
  const storing = store.hold(touches('journal/'))
  publisher.send(publish('a', 1, 1, { payload: 'x'.repeat(1_500_000) }))
  await storing
  await idle.closed()
  t.notOk(publisher.isClosed, 'nobody reads what it sends')
  store.release()
  await publisher.next('puback')
})

function connect(clientId: string, fields = {}): Buffer {
  const base = { cmd: 'connect', protocolId: 'MQTT', protocolVersion: 4, clean: false, keepalive: 0 } as const
  return generate({ ...base, clientId, ...fields })
}

const login = { username: 'u', password: Buffer.from('p') }

/** A broker that counts log-ins, and whose store can fail or wait. */
async function openCounting(t: Test) {
  let count = 0
  const authenticate = () => {
    count++
    return opened.broker.everybody
  }
  const opened = await openFailing(t, { access: { authenticate } })
  return { ...opened, logIns: () => count }
}

/** A client whose log-in waits for the store. */
async function heldLogIn(t: Test, broker: Plain, store: ReturnType<typeof createFailingStore>) {
  const storing = store.hold(touches('session/'))
  const client = await rawClient(t, broker.port)
  client.send(connect('c'))
  await storing
  return client
}

type Plain = Awaited<ReturnType<typeof openBroker>>

/** Resolves when no more than `left` connections are open. */
async function gone(broker: Plain, left = 0): Promise<void> {
  await until(() => broker.broker.connectionCount() <= left)
}

async function openConnections(broker: Plain, count: number): Promise<void> {
  await until(() => broker.broker.connectionCount() >= count)
}

async function dropped({ metrics }: Plain): Promise<number> {
  const { values } = await metrics.messagesDropped.get()
  return values.reduce((sum, { value }) => sum + value, 0)
}

/** A client at QoS 2 that is taken over (`second`) while its message to `watcher` is being stored: the store holds it. */
async function takenOver(t: Test) {
  const { store, broker } = await openFailing(t)
  const watcher = await subscriber(t, broker, 'w', { a: 0 })
  const first = await peer(t, broker, 'p', { clean: false })
  const storing = store.hold(touches('incoming/'))
  first.send(publish('a', 2, 5))
  await storing
  const second = await peer(t, broker, 'p', { clean: false })
  return { store, watcher, second }
}
