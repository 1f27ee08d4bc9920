import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import type { BrokerLimits } from '../../../broker/broker.ts'
import { createMembership } from '../../../store/nodes/membership.ts'
import { ConditionFailed, type Store } from '../../../store/store.ts'
import { connect, connectPublisher } from '../../clients.ts'
import { openBroker, peer, publish, subscribe, subscriber, texts } from '../../conformance/peers.ts'
import { control, controlTopic, institutions, station } from '../../events.ts'
import { startHeldFleet } from '../../nodes/held-fleet.ts'
import type { PlainBroker } from '../../plain-broker.ts'
import { rawClient } from '../../raw-client.ts'
import { withoutRedis } from '../../redis-server.ts'
import { createSharedSpace, settled, type TestStore } from '../../shared-store.ts'
import { until } from '../../until.ts'

/* One node drops a session. Another node still stores a message for the session. */

const [own = ''] = institutions

t.test('a message queued for a session that is gone goes with it', { skip: withoutRedis }, async (t) => {
  const { a, b, c, hold, release, subscriber, publisher } = await startHeldFleet(t, { institution: own })
  const login = { clientId: 'gone', clean: false }
  const asleep = await connect(t, b, subscriber, login)
  await asleep.client.subscribeAsync(controlTopic(station(0, 0)), { qos: 1 })
  await asleep.client.endAsync()
  await until(async () => (await a.connected('gone'))?.connected === false)
  const studio = await rawClient(t, a.mqttPort, readFileSync(a.caPath))
  const { username, password } = publisher
  await studio.connect({ username, password: Buffer.from(password), clientId: 'studio' })
  hold()
  studio.send({
    cmd: 'publish',
    topic: `inbox/${own}`,
    qos: 1,
    messageId: 1,
    retain: false,
    dup: false,
    payload: JSON.stringify(control(station(0, 0), { name: 'for the one before' })),
  })
  await studio.settled()
  await b.ask('sessions.drop', { clientId: 'gone' })
  release()
  await studio.next('puback')

  t.test('the next session of that name does not get it', async (t) => {
    for (const node of [b, c]) {
      const next = await connect(t, node, subscriber, login)
      await next.client.subscribeAsync(controlTopic(station(0, 1)), { qos: 1 })
      const other = await connectPublisher(t, a, publisher, own)
      await other.publish(control(station(0, 1), { name: 'for the one after' }))
      await next.received.until(({ json }) => json.name === 'for the one after')
      const names = next.received.all.map(({ json }) => json.name)
      t.notOk(names.includes('for the one before'), `not at node ${node.index}`)
      await next.client.endAsync()
      await other.client.endAsync()
    }
  })
})

const persistent = { clean: false }

/** Starts brokers that share a store. */
async function openNodes(t: Test, count: number, limits: Partial<BrokerLimits> = {}) {
  const space = createSharedSpace()
  const directory = t.testdir()
  const log = pino({ level: 'silent' })
  const nodes: (PlainBroker & {
    store: TestStore
    membership: Awaited<ReturnType<typeof createMembership>>
  })[] = []
  for (let index = 0; index < count; index++) {
    const store = space.openFollowed(t)
    const name = `${index}`
    const idFile = join(directory, name)
    const onGap = (reason: Error) => void t.error(reason)
    const membership = await createMembership({ store, name, idFile, log, onGap })
    const node = await openBroker(t, { node: { store, nodes: membership }, limits })
    await membership.join()
    t.teardown(() => membership.leave())
    nodes.push({ ...node, store, membership })
  }
  const heard = () => settled(...nodes.map(({ store }) => store))
  await heard()
  /** Asserts that session `gone` left nothing in the store, and nothing for a new session. */
  async function isGone(t: Test): Promise<void> {
    await heard()
    for (const [index, node] of nodes.entries()) {
      t.notOk(await node.broker.hasSession('gone'), `node ${index} does not know it`)
    }
    const [node] = nodes
    if (!node) return
    for (const prefix of ['session/gone', 'incoming/gone/', 'outgoing/gone/']) {
      t.same(await keysBelow(node.store, prefix), [])
    }
    const next = await rawClient(t, node.port)
    t.match(await next.connect({ clientId: 'gone', ...persistent }), { sessionPresent: false })
    await next.settled()
    t.same(texts(next), [])
    next.socket.destroy()
    await next.closed()
  }
  const [one, other] = nodes
  if (!one || !other) throw new Error('two nodes')
  return { nodes, one, other, heard, isGone }
}

async function keysBelow(store: Store, prefix: string): Promise<string[]> {
  const keys: string[] = []
  for await (const [key] of store.range(prefix)) keys.push(key)
  return keys
}

t.test('a session that is dropped while its record is being stored is gone', async (t) => {
  const { nodes, heard, isGone } = await openNodes(t, 2)
  const [node] = nodes
  if (!node) throw new Error('a node')
  for (const end of ['disconnect', 'subscribe'] as const) {
    const client = await subscriber(t, node, 'gone', { a: 1 }, persistent)
    await heard()
    if (end === 'subscribe') subscribe(client, 2, { b: 1 })
    else client.send({ cmd: 'disconnect' })
    await node.broker.dropSession('gone')
    await client.closed()
    await isGone(t)
  }
})

t.test('a session that leaves behind a change that was given up misses nothing', async (t) => {
  const { one, other, heard } = await openNodes(t, 2)
  const client = await subscriber(t, one, 'left', { a: 1 }, persistent)
  const publisher = await peer(t, other, 'studio')
  await heard()
  one.store.cut('applied')
  const applied = until(async () => (await other.store.get('session/left'))?.includes('"b"') ?? false)
  subscribe(client, 2, { b: 1 })
  await applied
  one.store.cut('lost')
  client.socket.destroy()
  await client.closed()
  publisher.send(publish('a', 1, 1))
  await publisher.next('puback')
  one.store.restore()
  await until(async () => !(await other.store.get('session/left'))?.includes('"node"'))
  await heard()
  const again = await rawClient(t, other.port)
  t.match(await again.connect({ clientId: 'left', ...persistent }), { sessionPresent: true })
  await again.next('publish')
  t.same(texts(again), ['a a'])
})

t.test('a session that is dropped while a message for it is stored does not come back', async (t) => {
  for (const first of ['drop', 'message'] as const) {
    for (const writer of [0, 1, 2]) {
      for (const where of ['connected', 'away'] as const) {
        const { nodes, heard, isGone } = await openNodes(t, 3)
        const [node, other] = [nodes[writer], nodes[(writer + 1) % 3]]
        if (!node || !other) throw new Error('three nodes')
        const client = await subscriber(t, other, 'gone', { a: 1 }, persistent)
        const publisher = await peer(t, node, 'studio')
        if (where === 'away') client.socket.destroy()
        publisher.send(publish('a', 1, 1))
        await publisher.next('puback')
        await heard()
        const drop = async () => void (await other.broker.dropSession('gone'))
        const message = async () => {
          publisher.send(publish('a', 1, 2))
          await publisher.next('puback', 1)
        }
        await Promise.all((first === 'drop' ? [drop, message] : [message, drop]).map((step) => step()))
        t.comment(`${first} first, stored by node ${writer}, ${where}`)
        await isGone(t)
      }
    }
  }
})

t.test('a session that a client has on another node by now is not dropped', async (t) => {
  const { nodes, one, other, heard } = await openNodes(t, 2)
  const before = await subscriber(t, one, 'taken', { a: 1 }, persistent)
  before.socket.destroy()
  await before.closed()
  await heard()
  one.store.lag()
  const now = await peer(t, other, 'taken', persistent)
  const dropped = one.broker.dropSession('taken')
  one.store.restore()
  await t.rejects(dropped, ConditionFailed)
  await heard()
  for (const { broker } of nodes) t.ok(await broker.hasSession('taken'))
  const publisher = await peer(t, one, 'studio')
  publisher.send(publish('a', 1, 1))
  await now.next('publish')
})

t.test('a session that has expired on a node that lags is not swept away from who uses it', async (t) => {
  const { nodes, one, other, heard } = await openNodes(t, 2, { sessionExpiryMs: 50 })
  const before = await subscriber(t, one, 'taken', { a: 1 }, persistent)
  before.socket.destroy()
  await before.closed()
  await heard()
  const isOver = ({ broker: { known } }: PlainBroker) => {
    const session = known.get('taken')
    return session !== undefined && known.hasExpired(session)
  }
  await until(() => nodes.every(isOver))
  one.store.lag()
  const now = await peer(t, other, 'taken', persistent)
  const swept = one.broker.sessions.sweep()
  one.store.restore()
  await swept
  await heard()
  for (const { broker } of nodes) t.ok(await broker.hasSession('taken'))
  await now.settled()
})

t.test(
  'what a node that died has stored of its sessions outlives a sweep that began before them',
  async (t) => {
    const { one, other } = await openNodes(t, 2, { sessionExpiryMs: 1 })
    const publisher = await peer(t, one, 'studio')
    const before = await subscriber(t, one, 'over', { a: 1 }, persistent)
    before.send({ cmd: 'disconnect' })
    await before.closed()
    await until(() => [...one.broker.known.values()].some(one.broker.known.hasExpired))
    const { commit } = one.store
    let goOn = () => {}
    let isSweeping = false
    one.store.commit = async (changes, begun) => {
      if (changes.some((change) => 'del' in change && change.del === 'session/over')) {
        isSweeping = true
        await new Promise<void>((resolve) => {
          goOn = resolve
        })
      }
      return commit(changes, begun)
    }
    const swept = one.broker.sessions.sweep()
    await until(() => isSweeping)

    const client = await subscriber(t, other, 'fresh', { a: 1 }, persistent)
    publisher.send(publish('a', 1, 1))
    const { messageId = 0 } = await client.next('publish')
    client.send({ cmd: 'puback', messageId })
    await client.settled()
    const key = `progress/${other.membership.self}`
    await until(async () => (await one.store.get(key))?.includes('"unsettled":{}') ?? false)
    other.store.cut()
    client.socket.destroy()
    await until(async () => (await one.store.get(key))?.includes('"end"') ?? false)
    goOn()
    await swept
    other.store.restore()
    const again = await peer(t, one, 'fresh', persistent)
    await again.settled()
    t.same(texts(again), [], 'it had acknowledged the message')
  },
)

t.test('what is owed to a client whose log-in was given up, and stored all the same, is kept', async (t) => {
  const { one, other, heard } = await openNodes(t, 2)
  const before = await subscriber(t, one, 'owed', { a: 1 }, persistent)
  before.send({ cmd: 'disconnect' })
  await before.closed()
  const publisher = await peer(t, other, 'studio')
  publisher.send(publish('a', 1, 1))
  await publisher.next('puback')
  await heard()
  one.store.lag()
  const client = await rawClient(t, one.port)
  const refused = client.connectInVain({ clientId: 'owed', ...persistent })
  await until(async () => (await other.store.get('session/owed'))?.includes('"node"') ?? false)
  one.store.cut('applied')
  t.strictSame(await refused, [])
  // This message leads to stored progress that is newer than the session record. The progress must not hide the
  // messages that the session is owed.
  publisher.send(publish('a', 1, 2))
  await publisher.next('puback', 1)
  await until(async () => (await keysBelow(other.store, 'progress/')).length > 0)
  one.store.restore()
  const again = await peer(t, other, 'owed', persistent)
  await again.next('publish', 1)
  t.same(texts(again), ['a a', 'a a'])
})

t.test('a log-in that was given up ends no session that its client has used elsewhere since', async (t) => {
  const { nodes, heard } = await openNodes(t, 2)
  const [one, other] = nodes
  if (!one || !other) throw new Error('two nodes')
  one.store.lag()
  const impatient = await rawClient(t, one.port)
  const refused = impatient.connectInVain({ clientId: 'kept', ...persistent })
  await until(async () => (await other.store.get('session/kept')) !== undefined)
  impatient.socket.destroy()
  t.strictSame(await refused, [])
  const elsewhere = await subscriber(t, other, 'kept', { a: 1 }, persistent)
  elsewhere.send({ cmd: 'disconnect' })
  await elsewhere.closed()
  one.store.restore()
  await heard()
  const again = await rawClient(t, other.port)
  t.match(await again.connect({ clientId: 'kept', ...persistent }), { sessionPresent: true })
})

t.test(
  'what is being sent while a clean session takes over elsewhere stays with the one before',
  async (t) => {
    const { one: a, other: b, heard } = await openNodes(t, 2)
    const before = await subscriber(t, a, 'gone', { a: 2 }, persistent)
    const publisher = await peer(t, b, 'studio')
    await heard()
    for (const id of [1, 2]) publisher.send(publish('a', 1, id))
    publisher.send(publish('a', 2, 3))
    const next = await peer(t, b, 'gone', { clean: true })
    await before.closed()
    await publisher.next('pubrec')
    await heard()
    await next.settled()
    t.same(texts(next), [])
    next.send({ cmd: 'disconnect' })
    await next.closed()
    await heard()
    t.same(await keysBelow(a.store, 'outgoing/'), [])
    const again = await rawClient(t, a.port)
    t.match(await again.connect({ clientId: 'gone', ...persistent }), { sessionPresent: false })
    await again.settled()
    t.same(texts(again), [])
  },
)
