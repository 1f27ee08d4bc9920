import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import pino from 'pino'
import t, { type Test } from 'tap'
import { createMembership } from '../../store/nodes/membership.ts'
import { openBroker, type Peer, peer, publish, subscriber, texts } from '../conformance/peers.ts'
import { rawClient } from '../raw-client.ts'
import { createSharedSpace, settled } from '../shared-store.ts'
import { until } from '../until.ts'

/* A lagging node decides before it has received the commits of other nodes. */

const persistent = { clean: false }
const hour = 3_600_000

for (const where of ['a node that was there', 'a node that started since'] as const) {
  t.test(
    `a QoS 2 message that is repeated at ${where} reaches filters unknown to the node before`,
    async (t) => {
      const { clock, start } = openHub(t)
      const [a, b] = [await start('a'), await start('b')]
      const old = await subscriber(t, b, 'old', { t: 1 }, persistent)
      const publisher = await peer(t, a, 'studio', persistent)
      await settled(a.store, b.store)
      clock.now += hour

      a.store.cut('applied')
      const fresh = await subscriber(t, b, 'fresh', { t: 1 }, persistent)
      publisher.send(publish('t', 2, 7))
      await publisher.closed()
      const other = where === 'a node that was there' ? b : await start('c')
      clock.now += hour
      const again = await peer(t, other, 'studio', persistent)
      for (const packetId of [7, 7]) {
        again.send(publish('t', 2, packetId, { dup: true }))
        await again.next('pubrec')
      }

      await settled(b.store)
      for (const listener of [old, fresh]) {
        await listener.settled()
        t.same(texts(listener), ['t t'], 'once')
      }
    },
  )
}

t.test('an event reaches a session that comes to a lagging node with a filter of another', async (t) => {
  const { start } = openHub(t)
  const [a, b] = [await start('a'), await start('b')]
  await leave(await subscriber(t, b, 'mover', { other: 1 }, persistent))
  await isOffline(b, 'mover')
  await settled(b.store, a.store)
  const publisher = await peer(t, a, 'studio')

  a.store.lag()
  await leave(await subscriber(t, b, 'mover', { t: 1 }, persistent))
  await isOffline(b, 'mover')
  publisher.send(publish('t', 1))
  await publisher.settled()
  const coming = peer(t, a, 'mover', persistent)
  await logsIn(a, 2)
  a.store.restore()

  await publisher.next('puback')
  const mover = await coming
  await publishes(mover, await peer(t, b, 'studio at b'), 'other')
  t.same(texts(mover), ['t t', 'other other'])
})

t.test('a log-in that its client gave up does not end the session that the client has since', async (t) => {
  const { start } = openHub(t)
  const [a, b] = [await start('a'), await start('b')]
  await leave(await subscriber(t, b, 'mover', { t: 1 }, persistent))
  await isOffline(b, 'mover')
  await settled(b.store, a.store)

  a.store.lag()
  await leave(await peer(t, b, 'mover', persistent))
  await isOffline(b, 'mover')
  const given = await beginLogIn(t, a, 'mover', { clean: true })
  given.socket.destroy()
  await until(() => a.broker.connectionCount() === 0)
  a.store.restore()
  await settled(a.store, b.store)

  const again = await rawClient(t, b.port)
  t.match(await again.connect({ clientId: 'mover', clean: false }), { sessionPresent: true })
})

t.test('a session that began with a log-in its client gave up is not kept', async (t) => {
  const { start } = openHub(t)
  const [a, b] = [await start('a'), await start('b')]
  a.store.lag()
  const given = await beginLogIn(t, a, 'mover', { clean: false })
  given.socket.destroy()
  await until(() => a.broker.connectionCount() === 0)
  a.store.restore()
  await until(() => a.broker.sessions.get('mover') === undefined)
  await settled(a.store, b.store)
  const again = await rawClient(t, b.port)
  t.match(await again.connect({ clientId: 'mover', clean: false }), { sessionPresent: false })
})

for (const how of ['is offline', 'is offline, and was connected there', 'is connected elsewhere'] as const) {
  t.test(`a session that has unsubscribed and ${how} gets nothing that a lagging node queues`, async (t) => {
    const { start } = openHub(t)
    const [a, b] = [await start('a'), await start('b')]
    const wasThere = how.endsWith('there')
    const first = await subscriber(t, wasThere ? a : b, 'leaver', { t: 1, kept: 1 }, persistent)
    const publisher = await peer(t, a, 'studio')
    await settled(a.store, b.store)

    a.store.cut('applied')
    const leaver = wasThere ? await peer(t, b, 'leaver', persistent) : first
    leaver.send({ cmd: 'unsubscribe', messageId: 2, unsubscriptions: ['t'] })
    await leaver.next('unsuback')
    if (how !== 'is connected elsewhere') {
      await leave(leaver)
      await isOffline(b, 'leaver')
    }
    publisher.send(publish('t', 1))
    await publisher.closed()
    await settled(b.store)
    const after = how === 'is connected elsewhere' ? leaver : await peer(t, b, 'leaver', persistent)
    await publishes(after, await peer(t, b, 'studio at b'), 'kept')
    t.same(texts(after), ['kept kept'])
  })
}

for (const there of ['the lagging node', 'a third node'] as const) {
  t.test(`a session that comes to ${there} gets nothing that the lagging node queued`, async (t) => {
    const { start } = openHub(t)
    const [a, b, c] = [await start('a'), await start('b'), await start('c')]
    const leaver = await subscriber(t, b, 'leaver', { t: 1, kept: 1 }, persistent)
    const publisher = await peer(t, a, 'studio')
    await settled(a.store, b.store)

    a.store.lag()
    leaver.send({ cmd: 'unsubscribe', messageId: 2, unsubscriptions: ['t'] })
    await leaver.next('unsuback')
    await settled(b.store)
    b.store.cut()
    publisher.send(publish('t', 1))
    await publisher.settled()
    a.store.restore()
    await publisher.next('puback')
    await settled(a.store, c.store)
    const after = await peer(t, there === 'a third node' ? c : a, 'leaver', persistent)
    await publishes(after, publisher, 'kept')
    t.same(texts(after), ['kept kept'])
  })
}

t.test('an entry that is refused leaves the message to the other sessions that have it', async (t) => {
  const { start } = openHub(t)
  const [a, b] = [await start('a'), await start('b')]
  const leaver = await subscriber(t, b, 'leaver', { t: 1 }, persistent)
  const stays = await subscriber(t, b, 'stays', { t: 1 }, persistent)
  const publisher = await peer(t, a, 'studio')
  await settled(a.store, b.store)

  a.store.cut('applied')
  for (const client of [stays, leaver]) {
    if (client === leaver) {
      client.send({ cmd: 'unsubscribe', messageId: 2, unsubscriptions: ['t'] })
      await client.next('unsuback')
    }
    await leave(client)
  }
  await isOffline(b, 'leaver')
  await isOffline(b, 'stays')
  publisher.send(publish('t', 1))
  await publisher.closed()
  // Node `c` is new, so it knows only what the store has.
  const after = await peer(t, await start('c'), 'stays', persistent)
  t.match(await after.next('publish'), { topic: 't' })
})

for (const [what, isAway] of [
  ['that is not stored yet', 'lag'],
  ['that could not be stored', 'cut'],
] as const) {
  t.test(`an event that was acknowledged before an UNSUBSCRIBE ${what} reaches the session`, async (t) => {
    const { start } = openHub(t)
    const [a, b] = [await start('a'), await start('b')]
    const leaver = await subscriber(t, b, 'leaver', { t: 1, kept: 1 }, persistent)
    const publisher = await peer(t, a, 'studio')
    await settled(a.store, b.store)

    b.store[isAway]()
    publisher.send(publish('t', 1))
    await publisher.next('puback')
    leaver.send({ cmd: 'unsubscribe', messageId: 2, unsubscriptions: ['t'] })
    if (isAway === 'lag') await leaver.settled()
    else await leaver.closed()
    b.store.restore()
    const after = isAway === 'lag' ? leaver : await peer(t, b, 'leaver', persistent)
    await publishes(after, publisher, 'kept')
    t.same(texts(after), ['t t', 'kept kept'])
  })
}

t.test('what a node that does not answer may have sent comes again with DUP [MQTT-3.3.1-1]', async (t) => {
  const { start } = openHub(t)
  const [a, b] = [await start('a'), await start('b')]
  const first = await subscriber(t, a, 'mover', { t: 1 }, persistent)
  const publisher = await peer(t, b, 'studio')
  await settled(a.store, b.store)

  publisher.send(publish('t', 1))
  await first.next('publish')
  a.store.cut()
  const again = await peer(t, b, 'mover', persistent)
  t.match(await again.next('publish'), { topic: 't', dup: true })
})

/** Nodes that share a store in memory, and a clock. */
function openHub(t: Test) {
  const space = createSharedSpace()
  const clock = { now: Date.now() }
  const directory = t.testdir()
  const log = pino({ level: 'silent' })
  return {
    clock,
    async start(name: string) {
      const store = space.openFollowed(t)
      const idFile = join(directory, name)
      const nodes = await createMembership({ store, name, idFile, log, onGap: (reason) => t.error(reason) })
      const broker = await openBroker(t, { node: { store, nodes }, clock: () => clock.now })
      await nodes.join()
      t.teardown(async () => {
        store.restore()
        await nodes.leave()
      })
      return { ...broker, store }
    },
  }
}

/** Resolves when the listener has the message, and thus everything queued before. */
async function publishes(listener: Peer, publisher: Peer, topic: string): Promise<void> {
  publisher.send(publish(topic, 1))
  await until(() => texts(listener).includes(`${topic} ${topic}`))
}

/** Resolves while the client's log-in waits for the store. */
async function beginLogIn(t: Test, node: Node, clientId: string, { clean }: { clean: boolean }) {
  const client = await rawClient(t, node.port)
  const protocol = { protocolId: 'MQTT', protocolVersion: 4, keepalive: 0 } as const
  client.send({ cmd: 'connect', clientId, clean, ...protocol })
  await logsIn(node, 1)
  return client
}

async function leave(client: Peer): Promise<void> {
  client.send({ cmd: 'disconnect' })
  await client.closed()
}

type Node = Awaited<ReturnType<ReturnType<typeof openHub>['start']>>

/** Resolves when the node has stored that the client is offline. */
async function isOffline({ broker, store }: Node, clientId: string): Promise<void> {
  await until(() => broker.known.get(clientId)?.node === undefined)
  await settled(store)
}

/** Resolves when the node has `connections` clients, and the log-in of the newest waits for the store. */
async function logsIn({ broker }: Node, connections: number): Promise<void> {
  await until(() => broker.connectionCount() === connections)
  for (let turns = 0; turns < 50; turns++) await nextTurn()
}
