import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { createPublishing } from '../../../broker/publish.ts'
import { createPacing } from '../../../listener/pacing.ts'
import { createPublishRate } from '../../../listener/publish-rate.ts'
import { createOnlyNode } from '../../../store/nodes/nodes.ts'
import { createFailingStore, touches } from '../../broker/failing-store.ts'
import {
  openBroker,
  openFailing,
  type Peer,
  peer,
  publish,
  publishes,
  subscribe,
  subscriber,
} from '../../conformance/peers.ts'
import type { PlainBroker } from '../../plain-broker.ts'
import { createRandom } from '../../random.ts'
import { rawClient } from '../../raw-client.ts'

/* The broker acknowledges nothing without the store, and recovers without loss. */

const unhandled: unknown[] = []
process.on('unhandledRejection', (reason) => unhandled.push(reason))
process.on('warning', (warning) => warning.name.startsWith('MaxListeners') && unhandled.push(warning))

t.test(
  'whatever needs the store is not acknowledged while it refuses, and works again afterwards',
  async (t) => {
    const { store, broker } = await openFailing(t)
    const attempts: [what: string, attempt: (client: Peer) => void, done: Parameters<Peer['next']>[0]][] = [
      ['PUBLISH at QoS 1', (client) => client.send(publish('a', 1, 1)), 'puback'],
      ['PUBLISH at QoS 2', (client) => client.send(publish('a', 2, 2)), 'pubrec'],
      ['PUBREL', (client) => client.send({ cmd: 'pubrel', messageId: 2 }), 'pubcomp'],
      ['SUBSCRIBE', (client) => subscribe(client, 3, { b: 1 }), 'suback'],
      [
        'UNSUBSCRIBE',
        (client) => client.send({ cmd: 'unsubscribe', messageId: 4, unsubscriptions: ['b'] }),
        'unsuback',
      ],
    ]
    await subscriber(t, broker, 'w', { a: 1 }, { clean: false })
    for (const [what, attempt, done] of attempts) {
      const client = await peer(t, broker, 'c', { clean: false })
      const before = await failures(broker)
      store.fail()
      attempt(client)
      await client.closed()
      t.same(
        client.packets.map(({ cmd }) => cmd),
        ['connack'],
        `${what}: no answer`,
      )
      store.heal()
      const again = await peer(t, broker, 'c', { clean: false })
      attempt(again)
      await again.next(done)
      if (!what.startsWith('PUBLISH')) t.ok((await failures(broker)) > before, `${what}: counted`)
    }
    const messages = new Set(broker.lines.filter(({ level }) => level === 50).map(({ msg }) => msg))
    t.ok(messages.has('subscription not stored') && messages.has('end of subscription not stored'))
    t.ok(messages.has('release of a QoS 2 message not stored'))
  },
)

t.test('a log-in that cannot be stored is closed without CONNACK, and leaves no trace', async (t) => {
  const store = createFailingStore()
  let passed = 0
  const broker = await openBroker(t, {
    wrapStore: store.wrap,
    limits: { sessionExpiryMs: 60_000 },
    monotonic: () => passed,
  })
  for (const before of ['new', 'kept']) {
    store.fail(touches('session/'))
    const refused = await rawClient(t, broker.port)
    t.strictSame(await refused.connectInVain({ clientId: 'c', clean: false }), [], before)
    store.heal()
    passed += 60_000
    if (before === 'new') t.equal(broker.broker.sessions.get('c'), undefined)
    else t.equal(await broker.broker.sessions.sweep(), 1, 'it expires as before')
    const client = await rawClient(t, broker.port)
    t.match(await client.connect({ clientId: 'c', clean: false }), { returnCode: 0, sessionPresent: false })
    client.socket.destroy()
    await client.closed()
    while (broker.broker.connectionCount() > 0) await new Promise((resolve) => setImmediate(resolve))
  }
})

t.test('a slow store delays acknowledgements and nothing else', async (t) => {
  const { store, broker } = await openFailing(t)
  const live = await subscriber(t, broker, 'live', { '#': 0 })
  await subscriber(t, broker, 'kept', { a: 1 }, { clean: false })
  const publisher = await peer(t, broker, 'p')
  const storing = store.hold(touches('journal/'))
  publisher.send(publish('a', 1, 1))
  await storing
  const announced = { topic: 'b', payload: Buffer.from('b'), qos: 0, queue: { keep: 'every' } } as const
  broker.broker.announce([announced])
  t.equal((await live.next('publish')).topic, 'b', 'what needs no store goes on')
  await publisher.settled()
  t.notOk(publisher.packets.some(({ cmd }) => cmd === 'puback'))
  store.release()
  await publisher.next('puback')
  await live.next('publish', 1)
})

t.test('acknowledgements that could not be stored are stored later, without further traffic', async (t) => {
  const { store, broker } = await openFailing(t)
  const client = await subscriber(t, broker, 'c', { a: 1 }, { clean: false })
  client.send(publish('a', 1))
  const { messageId = 0 } = await client.next('publish')
  const failed = new Promise<void>((resolve) => {
    store.fail((changes) => {
      if (touches('progress/')(changes)) resolve()
      return touches('progress/')(changes)
    })
  })
  client.send({ cmd: 'puback', messageId })
  await failed
  await client.settled()
  t.ok((await failures(broker)) > 0)
  const storing = store.hold(touches('progress/'))
  store.heal()
  await storing
  store.release()
  t.notOk(client.isClosed, 'the client need not know')
  await broker.store.commit([{ put: 'test/behind', value: '' }])
  // As after a crash: a new node knows only what is stored.
  const node = { store: broker.store, nodes: createOnlyNode('next') }
  const next = await peer(t, await openBroker(t, { node }), 'c', { clean: false })
  await next.settled()
  t.same(publishes(next), [])
})

t.test('a session that cannot be stored at the end keeps what its client has acknowledged', async (t) => {
  const { store, broker } = await openFailing(t)
  const client = await subscriber(t, broker, 'c', { a: 1 }, { clean: false })
  client.send(publish('a', 1))
  const { messageId = 0 } = await client.next('publish')
  client.send({ cmd: 'puback', messageId })
  await client.settled()
  const storing = store.hold(touches('progress/'))
  await storing
  store.release()
  await broker.store.commit([{ put: 'test/behind', value: '' }])
  store.fail(touches('session/'))
  await broker.broker.close()
  store.heal()
  const node = { store: broker.store, nodes: createOnlyNode('next') }
  const next = await peer(t, await openBroker(t, { node }), 'c', { clean: false })
  await next.settled()
  t.same(publishes(next), [])
})

t.test('what cannot be read is sent as soon as that works', async (t) => {
  const { store, broker } = await openFailing(t)
  const first = await subscriber(t, broker, 'c', { a: 1 }, { clean: false })
  first.socket.destroy()
  const publisher = await peer(t, broker, 'p')
  publisher.send(publish('a', 1))
  await publisher.next('puback')
  const payload = Buffer.alloc(1_000_000)
  for (let round = 0; round < 3; round++) {
    // These messages have so many bytes that message `a` is no longer in memory.
    for (let id = 1; id <= 13; id++) publisher.send(publish('large', 1, id, { payload }))
    await publisher.next('puback', 13 * (round + 1))
    const failed = new Promise<void>((resolve) => {
      store.failReads((key) => {
        if (key.startsWith('journal/')) resolve()
        return key.startsWith('journal/')
      })
    })
    const client = await peer(t, broker, 'c', { clean: false })
    await failed
    await client.settled()
    t.equal(publishes(client).length, 0)
    store.heal()
    // From the second round on, the broker sends the message again.
    t.match(await client.next('publish'), { topic: 'a', dup: round > 0 })
    t.notOk(client.isClosed)
    client.socket.destroy()
    await client.closed()
  }
  const client = await peer(t, broker, 'c', { clean: false })
  const { messageId = 0 } = await client.next('publish')
  client.send({ cmd: 'puback', messageId })
  await client.settled()
  t.equal((await broker.broker.session('c'))?.queued, 0)
})

t.test(
  'who subscribes while an event is being stored gets the stored value, even if that fails',
  async (t) => {
    let fail: (() => void) | undefined
    const broker = await openBroker(t, {
      wrapStore: (store) => ({
        ...store,
        async commit(changes, underway) {
          if (!isFailing || !touches('retained/')(changes)) return store.commit(changes, underway)
          underway?.(1 + (await store.lastNumber()))
          return new Promise((_, reject) => {
            fail = () => reject(new Error('disk full'))
          })
        },
      }),
    })
    let isFailing = false
    const publisher = await peer(t, broker, 'p')
    publisher.send(publish('a', 1, 1, { payload: 'stored', retain: true }))
    await publisher.next('puback')
    isFailing = true
    publisher.send(publish('a', 1, 2, { payload: 'failing', retain: true }))
    while (!fail) await nextTurn()
    const client = await peer(t, broker, 'c', { clean: false })
    subscribe(client, 1, { a: 1 })
    t.match(await client.next('publish'), { payload: Buffer.from('stored'), retain: true })
    fail()
    await publisher.closed()
    await client.settled()
    t.equal(publishes(client).length, 1)
  },
)

t.test('a failing commit leaves the order of a queue as it was', async (t) => {
  const { store, broker } = await openFailing(t, { limits: { queueLimit: 3 } })
  const first = await subscriber(t, broker, 'c', { '#': 1 }, { clean: false })
  first.socket.destroy()
  await first.closed()
  const publisher = await peer(t, broker, 'p')
  for (let id = 1; id <= 3; id++) publisher.send(publish(`${id}`, 1, id))
  await publisher.next('puback', 2)
  store.fail(touches('journal/'))
  publisher.send(publish('refused', 1, 4))
  await publisher.closed()
  store.heal()
  const client = await peer(t, broker, 'c', { clean: false })
  await client.next('publish', 2)
  await client.settled()
  t.same(
    publishes(client).map(({ topic }) => topic),
    ['1', '2', '3'],
  )
})

t.test('a store that is closed refuses and crashes nothing', async (t) => {
  const broker = await openBroker(t)
  await subscriber(t, broker, 'w', { a: 1 }, { clean: false })
  const publisher = await peer(t, broker, 'p')
  const watching = await peer(t, broker, 'x')
  await broker.store.close()
  publisher.send(publish('a', 1))
  await publisher.closed()
  t.notOk(publisher.packets.some(({ cmd }) => cmd === 'puback'))
  const refused = await rawClient(t, broker.port)
  t.strictSame(await refused.connectInVain({ clientId: 'n', clean: false }), [])
  await watching.settled()
})

t.test('PINGREQ is answered while publishes wait for the store', async (t) => {
  const broker = await openBroker(t)
  const accept: (() => void)[] = []
  broker.receiveWith(() => new Promise((accepted) => accept.push(() => accepted(true))))
  const client = await peer(t, broker, 'five publishes')
  for (let packetId = 1; packetId <= 5; packetId++) client.send(publish('a', 1, packetId))
  while (accept.length < 5) await nextTurn()
  client.send({ cmd: 'pingreq' })
  await client.next('pingresp')
  t.notOk(client.packets.some(({ cmd }) => cmd === 'puback'))
  for (const acceptOne of accept) acceptOne()
  await client.next('puback', 4)
})

t.test('a publish that ends in an unexpected error closes the connection in its turn', async (t) => {
  const broker = await openBroker(t)
  let finishFirst = (_isAccepted: boolean) => {}
  const second = new Promise<void>((resolve) => {
    broker.receiveWith(({ topic }) => {
      if (topic === 'first') {
        return new Promise((accepted) => {
          finishFirst = accepted
        })
      }
      resolve()
      return Promise.reject(new Error('unexpected'))
    })
  })
  const client = await peer(t, broker, 'two publishes')
  client.send(publish('first', 1, 1))
  client.send(publish('second', 1, 2))
  await second
  // Ten turns are enough for the broker to handle the error.
  for (let turn = 0; turn < 10; turn++) await nextTurn()
  finishFirst(true)
  await client.closed()
  t.same(
    client.packets.map(({ cmd }) => cmd),
    ['connack', 'puback'],
    'the one before it is acknowledged',
  )
})

t.test('waiting acknowledgements hold nothing of those before', async (t) => {
  const publishing = createPublishing({
    clock: Date.now,
    // Not used here: `incoming` is only for QoS 2 messages.
    incoming: {} as never,
    publishes: () => true,
    inbox: async () => ({ outcome: 'published' }),
    pacing: { small: createPacing(1), large: createPacing(1) },
    rate: createPublishRate(0),
  })
  const publish = { topic: 'a', payload: Buffer.alloc(0), qos: 1, retain: false, packetId: 1 }
  const arrived = { ...publish, started: 0, finished: () => {} }
  let acknowledged = 0
  const link = {
    connection: { answer: () => acknowledged++ },
    session: { clientId: 'c', principal: { username: 'c' } },
    lastPublishSettled: Promise.resolve(true),
  }
  for (let index = 1; index <= 3; index++) {
    publishing.take(link as never, arrived as never)
    t.equal(await link.lastPublishSettled, true)
    t.equal(acknowledged, index)
  }
})

t.test(
  'with a store that fails at random nothing acknowledged is lost, and nothing goes unhandled',
  async (t) => {
    const { store, broker } = await openFailing(t)
    const random = createRandom('42')
    const watchers = await Promise.all(
      ['w1', 'w2'].map(async (id, index) => {
        const client = await subscriber(t, broker, id, { '#': index === 0 ? 1 : 2 }, { clean: false })
        client.socket.destroy()
        await client.closed()
        return id
      }),
    )
    store.fail(() => random.happens(0.15))
    store.failReads(() => random.happens(0.1))
    const arrived = new Map(watchers.map((id) => [id, new Set<string>()]))
    let done = false
    const reading = watchers.map((id) => readUntil(t, broker, id, arrived.get(id) ?? new Set(), () => done))
    const acknowledged = new Set<string>()
    const publishing = Array.from({ length: 4 }, (_, index) =>
      publishAll(t, broker, `p${index}`, 150, acknowledged),
    )
    await Promise.all(publishing)
    store.heal()
    t.equal(acknowledged.size, 600)
    done = true
    await Promise.all(reading)
    for (const [id, topics] of arrived) {
      t.same(
        [...acknowledged].filter((topic) => !topics.has(topic)),
        [],
        `${id} has every message that was acknowledged`,
      )
    }
    t.ok(store.refused > 50, `${store.refused} commits refused`)
    for (const id of watchers) t.equal((await broker.broker.session(id))?.queued, 0, 'and nothing is left')
  },
)

t.test('no rejection went unhandled, and no listeners piled up', async (t) => {
  await new Promise((resolve) => setImmediate(resolve))
  t.same(unhandled, [])
})

/** Publishes each message until the broker acknowledges it, over as many connections as needed. */
async function publishAll(
  t: Tap,
  broker: PlainBroker,
  clientId: string,
  total: number,
  acknowledged: Set<string>,
): Promise<void> {
  let client: Peer | undefined
  for (let number = 1; number <= total; number++) {
    const topic = `${clientId}/${number}`
    const qos = number % 2 === 0 ? 2 : 1
    while (!acknowledged.has(topic)) {
      client = client && !client.isClosed ? client : await logIn(t, broker, clientId)
      client.send(publish(topic, qos, number, { dup: true }))
      const answer = await answerOf(client, qos === 1 ? 'puback' : 'pubrec', number)
      if (!answer) continue
      acknowledged.add(topic)
      if (qos === 2) client.send({ cmd: 'pubrel', messageId: number })
    }
  }
}

async function logIn(t: Tap, broker: PlainBroker, clientId: string): Promise<Peer> {
  for (;;) {
    const client = await rawClient(t, broker.port)
    try {
      await client.connect({ clientId, clean: false })
      return client
    } catch (error) {
      if (!client.isClosed) throw error
    }
  }
}

/**
 * Waits for the packet `cmd` with this packet identifier. True: the packet has come. False: the connection closed
 * first.
 */
async function answerOf(client: Peer, cmd: string, messageId: number): Promise<boolean> {
  const has = () => client.packets.some((packet) => packet.cmd === cmd && packet.messageId === messageId)
  while (!has() && !client.isClosed) {
    const heard = new AbortController()
    const hear = (name: string) => once(client.socket, name, heard).catch(() => {})
    await Promise.race([hear('data'), hear('close')])
    heard.abort()
  }
  return has()
}

/** Acknowledges messages over several connections, until `isDone` and nothing is queued. */
async function readUntil(
  t: Tap,
  broker: PlainBroker,
  clientId: string,
  topics: Set<string>,
  isDone: () => boolean,
): Promise<void> {
  while (!isDone() || ((await broker.broker.session(clientId))?.queued ?? 0) > 0) {
    const client = await logIn(t, broker, clientId)
    let next = 0
    const take = () => {
      for (; next < client.packets.length; next++) {
        const packet = client.packets[next]
        if (packet?.cmd === 'pubrel') client.send({ cmd: 'pubcomp', messageId: packet.messageId ?? 0 })
        if (packet?.cmd !== 'publish') continue
        topics.add(packet.topic)
        client.send({ cmd: packet.qos === 2 ? 'pubrec' : 'puback', messageId: packet.messageId ?? 0 })
      }
    }
    take()
    while (!client.isClosed && !(isDone() && (await broker.broker.session(clientId))?.queued === 0)) {
      await once(client.socket, 'data', soon()).catch(() => {})
      take()
    }
    client.socket.destroy()
    await client.closed()
  }
}

type Tap = Parameters<typeof rawClient>[0]

function soon(): { signal: AbortSignal } {
  return { signal: AbortSignal.timeout(20) }
}

async function failures({ metrics }: PlainBroker): Promise<number> {
  return (await metrics.storeFailures.get()).values[0]?.value ?? 0
}
