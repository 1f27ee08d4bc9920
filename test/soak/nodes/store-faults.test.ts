import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { closed, connect, connectPublisher } from '../../clients.ts'
import { control, controlTopic, institutions, station } from '../../events.ts'
import { type FleetNode, startFleet } from '../../nodes/fleet.ts'
import { withoutRedis } from '../../redis-server.ts'
import type { Issued } from '../../start-hub.ts'
import { startNetwork } from '../../store/slow-network.ts'
import { until } from '../../until.ts'

/*
 * While Redis fails, nodes acknowledge only what is stored, and keep subscribers connected. Afterwards everything works
 * again by itself.
 */

const [own = ''] = institutions
const livestream = station()

type Fleet = Awaited<ReturnType<typeof startFleet>>

const faults: Record<string, (redis: Fleet['redis']) => Promise<void>> = {
  'restarts, after kill -9': (redis) => redis.restart(),
  async 'refuses connections for 10 s'(redis) {
    await redis.kill()
    await delay(10_000)
    await redis.restart()
  },
  async 'hangs for 10 s'(redis) {
    redis.pause()
    await delay(10_000)
    redis.resume()
  },
}

// The tests mostly wait, so several run at the same time.
t.jobs = 3

for (const [what, happens] of Object.entries(faults)) {
  t.test(`a Redis that ${what}`, { skip: withoutRedis }, async (t) => {
    const { redis, a, b, nodes } = await startFleet(t, 2)
    const { clients, watchers, publisher } = await startClients(t, a, b)
    const studios = [createPublisher(t, a, publisher, 0), createPublisher(t, b, publisher, 1)]
    const publishing = studios.map((studio) => studio.run())
    await until(() => studios.every(({ acknowledged }) => acknowledged.length > 20))
    const brokenClients: string[] = []
    for (const { client } of clients) {
      client.on('close', () => brokenClients.push(String(client.options.clientId)))
    }
    await happens(redis)
    const before = studios.map(({ acknowledged }) => acknowledged.length)
    await until(() =>
      studios.every(({ acknowledged }, index) => acknowledged.length > (before[index] ?? 0) + 20),
    )
    for (const studio of studios) studio.stop()
    await Promise.all(publishing)

    const acknowledged = studios.flatMap((studio) => studio.acknowledged)
    const offline = await connect(t, b, publisher.subscriber, { clientId: 'offline', clean: false })
    for (const { received, name } of [...watchers, { ...offline, name: 'offline' }]) {
      const missing = () => {
        const arrived = new Set(received.all.map(({ json }) => json.marker))
        return acknowledged.filter((marker) => !arrived.has(marker))
      }
      await until(() => missing().length === 0).catch(() => t.same(missing(), [], name))
      t.same(missing(), [], `${acknowledged.length} events: ${name} has every one`)
    }
    t.same(brokenClients, [], 'connected subscribers stay connected')
    for (const node of nodes)
      t.notOk(node.messages().some((message) => /starts again|took this one/.test(message)))
    const retained = nodes.map((node) => node.ask('retained.list', { filter: controlTopic(livestream) }))
    const [onA, onB] = await Promise.all(retained)
    t.same(onA, onB)
  })
}

t.test('while Redis does not answer nothing is', { skip: withoutRedis }, async (t) => {
  const { redis, a, b } = await startFleet(t, 2)
  const { publisher, watchers } = await startClients(t, a, b)
  const studio = await connectPublisher(t, a, publisher.login, own)
  redis.pause()
  const cut = closed(studio.client)
  const answered = studio.client.publishAsync(`inbox/${own}`, JSON.stringify(marked('unheard')), { qos: 1 })
  answered.catch(() => undefined)
  await cut
  await says(a, /event not stored and not acknowledged: .*did not answer/)
  await until(() => a.messages().includes('Redis is not reachable: nothing is acknowledged'))
  redis.resume()
  await until(async () => {
    const next = await connectPublisher(t, a, publisher.login, own).catch(() => undefined)
    return (await next?.publish(marked('heard')))?.outcome === 'published'
  })
  for (const { received } of watchers) await received.until(({ json }) => json.marker === 'heard')
})

t.test('a will whose time comes while Redis is away fires afterwards', { skip: withoutRedis }, async (t) => {
  const { redis, a, b } = await startFleet(t, 2)
  const { publisher, watchers } = await startClients(t, a, b)
  const will = { topic: `inbox/${own}`, payload: JSON.stringify(marked('will')), qos: 1 as const }
  const last = await connect(t, a, publisher.login, { clientId: 'last', will })
  await redis.kill()
  last.client.stream.destroy()
  await says(a, /event not stored|will not published/)
  await redis.restart()
  for (const { received } of watchers) await received.until(({ json }) => json.marker === 'will')
  const studio = await connectPublisher(t, a, publisher.login, own)
  await studio.publish(marked('end'))
  for (const { received } of watchers) {
    await received.until(({ json }) => json.marker === 'end')
    t.equal(received.all.filter(({ json }) => json.marker === 'will').length, 1)
  }
  await until(async () => (await b.connected('last')) === undefined)
})

t.test('a Redis whose memory is full', { skip: withoutRedis }, async (t) => {
  const { redis, a, b } = await startFleet(t, 2, { settings: ['maxmemory-policy noeviction'] })
  const { publisher, watchers } = await startClients(t, a, b)
  const studio = await connectPublisher(t, a, publisher.login, own)
  await studio.publish(marked('before'))
  const client = redis.client()
  await client.config('SET', 'maxmemory', '1mb')
  const cut = closed(studio.client)
  studio.client.publishAsync(`inbox/${own}`, JSON.stringify(marked('too much')), { qos: 1 }).then(
    () => t.fail('it was acknowledged'),
    () => undefined,
  )
  await cut
  await says(a, /event not stored .*Redis is out of memory \(maxmemory is reached\)/)
  await client.config('SET', 'maxmemory', '0')
  const again = await connectPublisher(t, a, publisher.login, own)
  t.equal((await again.publish(marked('after'))).outcome, 'published')
  for (const { received, client } of watchers) {
    await received.until(({ json }) => json.marker === 'after')
    t.notOk(received.all.some(({ json }) => json.marker === 'too much'))
    t.equal(client.connected, true)
  }
})

t.test('a slow Redis', { skip: withoutRedis }, async (t) => {
  const { a, b } = await startFleet(t, 2, {
    through: async (_index, port) => (await startNetwork(t, port, { delayMs: 100 })).url,
  })
  const { publisher, watchers } = await startClients(t, a, b)
  const studio = createPublisher(t, a, publisher, 0)
  const publishing = studio.run()
  await until(() => studio.acknowledged.length >= 20)
  studio.stop()
  await publishing
  for (const { received, name } of watchers) {
    const missing = () => {
      const arrived = new Set(received.all.map(({ json }) => json.marker))
      return studio.acknowledged.filter((marker) => !arrived.has(marker))
    }
    await until(() => missing().length === 0).catch(() => t.same(missing(), [], name))
    t.pass(name)
  }
})

/** Connects subscribers of every kind to both nodes, and makes an offline session. */
async function startClients(t: Test, a: FleetNode, b: FleetNode) {
  const subscriber = await a.subscriber('radio/#')
  const login = await a.publisher([own])
  await b.knows(2)
  const kinds = [
    { name: 'clean', clean: true, qos: 1 },
    { name: 'kept', clean: false, qos: 1 },
    { name: 'exact', clean: false, qos: 2 },
  ] as const
  const watchers = await Promise.all(
    [a, b].flatMap((node) =>
      kinds.map(async ({ name, clean, qos }) => {
        const clientId = `${name}-${node.index}`
        const client = await connect(t, node, subscriber, { clientId, clean })
        await client.client.subscribeAsync('radio/#', { qos })
        return { ...client, name: clientId }
      }),
    ),
  )
  const offline = await connect(t, a, subscriber, { clientId: 'offline', clean: false })
  await offline.client.subscribeAsync('radio/#', { qos: 1 })
  await offline.client.endAsync()
  return { watchers, clients: watchers, publisher: { login, subscriber } }
}

/** Resolves when the log of a node has a matching line. A node may log a fault after clients have noticed it. */
function says(node: FleetNode, message: RegExp): Promise<void> {
  return until(() => node.messages().some((line) => message.test(line)))
}

/** Publishes one event after the other. Repeats each event until it is acknowledged. */
function createPublisher(t: Test, node: FleetNode, { login }: { login: Issued }, index: number) {
  const acknowledged: string[] = []
  let isStopped = false
  return {
    acknowledged,
    stop: () => {
      isStopped = true
    },
    async run(): Promise<void> {
      let client = await connect(t, node, login)
      for (let number = 0; !isStopped; number++) {
        const marker = `${index}-${number}`
        for (let isDone = false; !isDone && !isStopped; ) {
          const sent = client.client.publishAsync(`inbox/${own}`, JSON.stringify(marked(marker)), { qos: 1 })
          const lost = closed(client.client).then(() => Promise.reject(new Error('the connection is gone')))
          isDone = await Promise.race([sent, lost]).then(
            () => true,
            () => false,
          )
          sent.catch(() => undefined)
          lost.catch(() => undefined)
          if (isDone) acknowledged.push(marker)
          while (!client.client.connected && !isStopped) {
            client = await connect(t, node, login).catch(() => delay(50).then(() => client))
          }
        }
        await delay(5)
      }
    },
  }
}

/** A control event, valid for an hour so that offline sessions get it later. */
function marked(marker: string): Record<string, unknown> {
  const validUntil = new Date(Date.now() + 3_600_000).toISOString()
  return control(livestream, { name: `state-${marker.length % 5}`, validUntil, marker })
}
