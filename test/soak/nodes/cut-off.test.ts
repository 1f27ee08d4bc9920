import { readFile } from 'node:fs/promises'
import { request } from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { closed, connect, connectPublisher } from '../../clients.ts'
import { control, institutions, station } from '../../events.ts'
import { freePort } from '../../free-port.ts'
import { type FleetNode, startFleet } from '../../nodes/fleet.ts'
import { type RedisServer, withoutRedis } from '../../redis-server.ts'
import { startNetwork } from '../../store/slow-network.ts'
import { until } from '../../until.ts'

/*
 * A node that alone does not reach Redis sends its clients to the others. An outage of Redis sends nobody away.
 */

const [own = ''] = institutions
const livestream = station()
const cutOff = 'this node is cut off from the store: clients are sent away'

t.jobs = 3

t.test(
  'a node that alone is cut off from Redis sends its clients away',
  { skip: withoutRedis },
  async (t) => {
    const { a, b, networks } = await startCuttable(t)
    const subscriber = await a.subscriber('radio/#')
    const login = await a.publisher([own])
    await b.knows(2)
    const studio = await connectPublisher(t, a, login, own)
    t.equal((await studio.publish(control(livestream))).outcome, 'published')
    const listener = await connect(t, a, subscriber)
    const [gone, silenced] = [closed(listener.client), closed(studio.client)]
    t.same(await answerOf(a, '/readyz'), { status: 200, body: { status: 'ok' } })

    networks[0]?.cut()
    await Promise.all([gone, silenced])
    await until(() => a.messages().includes(cutOff))
    t.same(await answerOf(a, '/readyz'), { status: 503, body: { status: 'unavailable', reason: 'cut off' } })
    t.same(await answerOf(a, '/livez'), { status: 200, body: { status: 'ok' } })
    t.match(await answerOf(b, '/readyz'), { status: 200 })
    await t.rejects(connect(t, a, subscriber), 'and lets no client in')
    const other = await connect(t, b, subscriber)
    t.ok(other.client.connected)
    const again = await connectPublisher(t, b, login, own)
    t.equal((await again.publish(control(livestream))).outcome, 'published')

    networks[0]?.mend()
    await until(async () => (await answerOf(a, '/readyz')).status === 200)
    const back = await connect(t, a, subscriber)
    t.ok(back.client.connected)
  },
)

for (const [what, happens] of Object.entries({
  ends: (redis: RedisServer) => redis.kill(),
  hangs: (redis: RedisServer) => redis.pause(),
})) {
  t.test(`while Redis ${what} for all nodes, no client is sent away`, { skip: withoutRedis }, async (t) => {
    const { a, b, redis } = await startCuttable(t)
    const nodes = [a, b]
    const subscriber = await a.subscriber('radio/#')
    await b.knows(1)
    const listeners = await Promise.all(nodes.map((node) => connect(t, node, subscriber)))
    await happens(redis)
    for (const node of nodes)
      await until(() => node.messages().includes('Redis is not reachable: nothing is acknowledged'))
    t.match(await answerOf(a, '/health'), { status: 503 })
    // A wrong decision would need six looks.
    await delay(8_000)
    for (const node of nodes) {
      t.match(await answerOf(node, '/readyz'), { status: 200 })
      t.notOk(node.messages().includes(cutOff))
    }
    for (const { client } of listeners) t.ok(client.connected)
    if (what === 'hangs') redis.resume()
  })
}

/** Two nodes, each with a network to Redis of its own. */
async function startCuttable(t: Parameters<typeof startFleet>[0]) {
  const networks: Awaited<ReturnType<typeof startNetwork>>[] = []
  const ports = [await freePort(), await freePort()]
  const fleet = await startFleet(t, 2, {
    envOf: (index) => ({ HUB_HTTPS_PORT: String(ports[index]) }),
    async through(index, port) {
      const network = await startNetwork(t, port)
      networks[index] = network
      return network.url
    },
  })
  return { ...fleet, networks }
}

async function answerOf(
  node: FleetNode,
  path: string,
): Promise<{ status: number | undefined; body: unknown }> {
  const ca = await readFile(node.caPath ?? '', 'utf8')
  const options = { port: node.httpsPort, host: 'localhost', path, ca, agent: false as const }
  return new Promise((resolve, reject) => {
    const asked = request(options, async (answer) => {
      let text = ''
      for await (const chunk of answer.setEncoding('utf8')) text += chunk
      resolve({ status: answer.statusCode, body: JSON.parse(text) })
    })
    asked.on('error', reject)
    asked.end()
  })
}
