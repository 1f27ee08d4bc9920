import t from 'tap'
import { closed, connect, connectPublisher } from '../../clients.ts'
import { control, institutions, playing, station } from '../../events.ts'
import { startFleet } from '../../nodes/fleet.ts'
import { withoutRedis } from '../../redis-server.ts'
import { startNetwork } from '../../store/slow-network.ts'
import { until } from '../../until.ts'

/* Clients must miss nothing while nodes are killed or cut off from Redis. */

const [own = ''] = institutions
const livestream = station()

/** A control event, valid for an hour so that offline sessions get it later. */
function numbered(number: number): Record<string, unknown> {
  const validUntil = new Date(Date.now() + 3_600_000).toISOString()
  return control(livestream, { name: `state-${number % 5}`, validUntil, marker: `${number}` })
}

const markersOf = (received: { all: readonly { json: Record<string, unknown> }[] }) =>
  received.all.flatMap(({ json }) => (json.marker === undefined ? [] : [String(json.marker)]))

t.test('a killed node', { skip: withoutRedis }, async (t) => {
  const { a, b, c } = await startFleet(t, 3)
  const subscriber = await a.subscriber('radio/#')
  const publisher = await a.publisher([own])
  await Promise.all([b.knows(2), c.knows(2)])
  const watcher = await connect(t, a, subscriber, { clientId: 'watcher' })
  await watcher.client.subscribeAsync('radio/#', { qos: 1 })
  const will = {
    topic: `inbox/${own}`,
    payload: JSON.stringify(playing(livestream, { title: 'will' })),
    qos: 1 as const,
  }
  const kept = { clean: false, reconnectPeriod: 0 }

  const apps = await Promise.all(
    ['app-0', 'app-1', 'app-2'].map((clientId) => connect(t, b, subscriber, { ...kept, clientId })),
  )
  for (const { client } of apps) await client.subscribeAsync('radio/#', { qos: 1 })
  const [fireman, baker] = await Promise.all(
    [b, c].map((node, index) => connect(t, node, publisher, { clientId: `last-${index}`, will })),
  )
  const lost = [...apps, fireman, baker].map((each) => each && closed(each.client))

  const studio = await connectPublisher(t, a, publisher, own)
  const published: string[] = []
  const publishUpTo = async (count: number) => {
    for (let number = published.length; number < count; number++) {
      await studio.publish(numbered(number))
      published.push(`${number}`)
    }
  }
  await publishUpTo(10)
  // Kill two nodes at once, in the middle of the events.
  await Promise.all([b.kill(), c.kill()])
  // Few events: a client must be back before the killed nodes are found out.
  await publishUpTo(12)
  await Promise.all(lost)

  const gone = () => a.messages().filter((message) => message === 'a node is gone').length
  t.equal(gone(), 0, 'not found out yet: its clients come back before that')
  const early = await connect(t, a, subscriber, { ...kept, clientId: 'app-0' })
  t.equal((await a.connected('app-0'))?.connected, true)
  await publishUpTo(20)
  await until(
    () => new Set([...markersOf(early.received), ...markersOf(apps[0]?.received ?? { all: [] })]).size === 20,
  )

  await until(() => gone() === 2)
  await watcher.received.until(({ json }) => json.title === 'will')
  t.match(await a.connected('app-1'), { connected: false, node: null }, 'after that it is offline')
  await Promise.all([b.start(), c.start()])
  t.equal((await b.ask<unknown[]>('sessions.list')).length, (await a.ask<unknown[]>('sessions.list')).length)
  for (const [index, node] of [a, c, b].entries()) {
    if (index === 0) continue
    const app = await connect(t, node, subscriber, { ...kept, clientId: `app-${index}` })
    const all = () => [...markersOf(app.received), ...markersOf(apps[index]?.received ?? { all: [] })]
    await until(() => new Set(all()).size === published.length)
    t.same([...new Set(all())].sort(), [...published].sort(), 'everything acknowledged is there')
  }
  t.equal((await studio.publish(numbered(100))).outcome, 'published')
  await watcher.received.until(({ json }) => json.marker === '100')
  const wills = watcher.received.all.filter(({ json }) => json.title === 'will')
  t.equal(wills.length, 2, 'each will fired once, also over the restarts')
  t.notOk(watcher.client.disconnecting || !watcher.client.connected)
})

t.test('a node that was killed and starts at once', { skip: withoutRedis }, async (t) => {
  const { a, b } = await startFleet(t, 2)
  const subscriber = await a.subscriber('radio/#')
  const publisher = await a.publisher([own])
  await b.knows(2)
  const watcher = await connect(t, b, subscriber, { clientId: 'watcher' })
  await watcher.client.subscribeAsync('radio/#', { qos: 1 })
  const payload = JSON.stringify(playing(livestream, { title: 'will' }))
  const will = { topic: `inbox/${own}`, payload, qos: 1 as const }
  const last = await connect(t, a, publisher, { clientId: 'last', will })
  const app = await connect(t, a, subscriber, { clientId: 'app' })
  await app.client.subscribeAsync('radio/#', { qos: 1 })
  const lost = [closed(last.client), closed(app.client)]
  // Node a becomes the leader again, and must clean up after its own former run.
  await a.kill()
  await a.start()
  await Promise.all(lost)
  await watcher.received.until(({ json }) => json.title === 'will')
  t.same(
    (await b.ask<{ clientId: string }[]>('sessions.list')).map(({ clientId }) => clientId),
    ['watcher'],
  )
  const studio = await connectPublisher(t, a, publisher, own)
  await studio.publish(numbered(1))
  await watcher.received.until(({ json }) => json.marker === '1')
  t.equal(watcher.received.all.filter(({ json }) => json.title === 'will').length, 1)
})

t.test(
  'a node that is cut off from Redis for longer than the others wait',
  { skip: withoutRedis },
  async (t) => {
    const networks = new Map<number, Awaited<ReturnType<typeof startNetwork>>>()
    const { a, b } = await startFleet(t, 2, {
      async through(index, port) {
        const network = await startNetwork(t, port)
        networks.set(index, network)
        return network.url
      },
    })
    const network = networks.get(b.index)
    const subscriber = await a.subscriber('radio/#')
    const publisher = await a.publisher([own])
    await b.knows(2)
    const stays = await connect(t, b, subscriber, { clientId: 'stays', clean: false })
    const clean = await connect(t, b, subscriber, { clientId: 'clean' })
    const moves = await connect(t, b, subscriber, { clientId: 'moves', clean: false })
    for (const { client } of [stays, clean, moves]) await client.subscribeAsync('radio/#', { qos: 1 })
    const studio = await connectPublisher(t, a, publisher, own)
    await studio.publish(numbered(0))
    for (const { received } of [stays, clean, moves]) await received.until(({ json }) => json.marker === '0')

    network?.cut()
    await until(() => a.messages().includes('a node is gone'))
    const movedAway = closed(moves.client)
    const moved = await connect(t, a, subscriber, { clientId: 'moves', clean: false })
    await studio.publish(numbered(1))
    await moved.received.until(({ json }) => json.marker === '1')
    t.notOk(markersOf(stays.received).includes('1'))

    network?.mend()
    await stays.received.until(({ json }) => json.marker === '1')
    await clean.received.until(({ json }) => json.marker === '1')
    await movedAway
    for (const { client } of [stays, clean, moved]) t.equal(client.connected, true)
    await until(async () => (await a.connected('stays'))?.connected === true)
    for (const node of [a, b]) {
      const nodeOf = async (clientId: string) => (await node.connected(clientId))?.node?.endsWith(b.name)
      await until(async () => (await nodeOf('stays')) === true && (await nodeOf('clean')) === true)
      await until(async () => (await nodeOf('moves')) === false)
    }
    await studio.publish(numbered(2))
    for (const { received } of [stays, clean, moved]) await received.until(({ json }) => json.marker === '2')
  },
)
