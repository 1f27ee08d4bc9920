import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import pino from 'pino'
import t, { type Test } from 'tap'
import { createMembership } from '../../store/nodes/membership.ts'
import { openBroker, type Peer, peer, publish, subscriber, texts } from '../conformance/peers.ts'
import { createSharedSpace, settled } from '../shared-store.ts'

/* A node that has not heard yet what the others did decides from an old memory. */

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
  await until(() => isClaiming(a, 'mover'))
  a.store.restore()

  await publisher.next('puback')
  const mover = await coming
  await publishes(mover, await peer(t, b, 'studio at b'), 'other')
  t.same(texts(mover), ['t t', 'other other'])
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
      const store = space.openWatched(t)
      const idFile = join(directory, name)
      const nodes = await createMembership({ store, name, idFile, log })
      const broker = await openBroker(t, { node: { store, nodes }, clock: () => clock.now })
      store.start()
      await nodes.join()
      t.teardown(async () => {
        store.restore()
        await nodes.leave()
      })
      return { ...broker, store }
    },
  }
}

/** Resolves when the listener has it, and with it everything that was queued before. */
async function publishes(listener: Peer, publisher: Peer, topic: string): Promise<void> {
  publisher.send(publish(topic, 1))
  await until(() => texts(listener).includes(`${topic} ${topic}`))
}

async function leave(client: Peer): Promise<void> {
  client.send({ cmd: 'disconnect' })
  await client.closed()
}

type Node = Awaited<ReturnType<ReturnType<typeof openHub>['start']>>

/** The end of its connection is stored. */
async function isOffline({ broker, store }: Node, clientId: string): Promise<void> {
  await until(() => broker.sessions.get(clientId)?.node === undefined)
  await settled(store)
}

function isClaiming({ broker }: Node, clientId: string): boolean {
  const session = broker.sessions.get(clientId)
  return session !== undefined && broker.sessions.isClaiming(session)
}

async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await holds())) await nextTurn()
}
