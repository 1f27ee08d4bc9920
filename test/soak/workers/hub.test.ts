import { once } from 'node:events'
import { readFile, stat } from 'node:fs/promises'
import { request } from 'node:https'
import { connect as connectTcp } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import type { Status, TrendSample } from '../../../operations/node.ts'
import { connect, connectPublisher } from '../../clients.ts'
import { control, institutions, station } from '../../events.ts'
import { withoutRedis } from '../../redis-server.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { temporaryDirectory } from '../../start-hub.ts'
import { until } from '../../until.ts'
import { areBack, startWorkers, workersOf, workersOn } from './start-workers.ts'

/*
 * A hub with several workers (`HUB_WORKERS`): one hub for its clients and operators, a node each for Redis.
 */

const [own = ''] = institutions
const livestream = station()

interface Client {
  clientId: string
  node: string
}

t.test('without a Redis, several workers are refused in one line', async (t) => {
  const home = await temporaryDirectory(t)
  await t.rejects(spawnHub(t, home, { HUB_WORKERS: '2' }), {
    message: /ended with 1: HUB_WORKERS: 2, expected 1 without a Redis \(HUB_REDIS_URL\)[^\n]*\n$/,
  })
})

t.test('a port that is not free ends the start with one line', { skip: withoutRedis }, async (t) => {
  const { hub, redis } = await startWorkers(t)
  const home = await temporaryDirectory(t)
  const env = { ...workersOn(redis.url), HUB_MQTT_PORT: String(hub.mqttPort) }
  await t.rejects(spawnHub(t, home, env), {
    message: /ended with 1: the hub cannot start: HUB_MQTT_PORT: \d+, expected a port that is free[^\n]*\n$/,
  })
})

t.test('workers are one hub for clients and operators', { skip: withoutRedis }, async (t) => {
  const { hub, ask, publisher, subscriber, home } = await startWorkers(t)
  t.equal(hub.messages.filter((message) => message === 'hub ready').length, 1)
  const listeners = []
  const reads = await subscriber('radio/#')
  for (let index = 0; index < 6; index++) listeners.push(await connect(t, hub, reads))
  for (const { client } of listeners) await client.subscribeAsync('radio/#')
  const studio = await connectPublisher(t, hub, await publisher([own]), own)
  const clients = await ask<Client[]>('clients.list')
  t.equal(clients.length, 7)
  t.equal(new Set(clients.map(({ node }) => node)).size, 2, 'connections go to both workers')

  t.equal((await studio.publish(control(livestream))).outcome, 'published')
  for (const { received } of listeners) await received.until(({ topic }) => topic.startsWith('radio/'))

  // Each command may be carried out by another worker.
  let uptime = 0
  for (let times = 0; times < 4; times++) {
    const status = await ask<Status>('status')
    t.equal(status.connections, 7)
    t.match(status.node, RegExp(`:${hub.pid}$`), 'it is that of all')
    t.same(
      new Set(status.workers?.map(({ node }) => node)),
      new Set(clients.map(({ node }) => node)),
      'which names each as lists of clients do',
    )
    t.equal(
      status.workers?.reduce((sum, { connections }) => sum + connections, 0),
      7,
    )
    t.ok(status.uptime >= uptime)
    uptime = status.uptime
    t.equal(status.counters['hub_events_total{outcome=published}'], 1)
    t.match(status.budget, { count: 1 })
    const body = await metricsOf(hub)
    t.match(body, /^hub_connections 7$/m)
    t.match(body, /^hub_events_total\{outcome="published"\} 1$/m)
    t.match(body, /^hub_feed_ok 1$/m)
    t.match(body, /^hub_budget_seconds_count 1$/m)
  }

  // The first sample may be older than the clients.
  await until(async () => (await ask<{ samples: TrendSample[] }>('trend')).samples.at(-1)?.connections === 7)
  for (let times = 0; times < 2; times++) {
    const { node, samples } = await ask<{ node: string; samples: TrendSample[] }>('trend')
    t.match(node, RegExp(`:${hub.pid}$`))
    t.equal(samples.at(-1)?.connections, 7)
    const sum = (of: (sample: TrendSample) => number) => samples.reduce((sum, each) => sum + of(each), 0)
    t.equal(
      sum(({ events }) => events.published ?? 0),
      1,
    )
    t.ok(sum(({ deliveries }) => deliveries) >= 7, 'six listeners and the feedback')
  }

  const entries = await ask<{ action: string; at: string }[]>('audit')
  const lines = (await readFile(join(home, 'data', 'audit.log'), 'utf8')).trim().split('\n')
  t.same(
    lines.map((line) => JSON.parse(line)),
    entries,
    'one file has all entries',
  )
  t.equal((await stat(hub.adminSocket)).mode & 0o777, 0o600)
  t.equal(await hub.stop('SIGTERM'), 0)
  await t.rejects(stat(hub.adminSocket), { code: 'ENOENT' })
})

t.test('a probe is answered while a worker is away', { skip: withoutRedis }, async (t) => {
  const { hub } = await startWorkers(t)
  let isAsking = true
  const answers: number[] = []
  const asking = ['/livez', '/readyz', '/health'].map(async (path) => {
    while (isAsking) {
      // What the killed worker had begun to answer ends with it.
      const answer = await get(hub, path).catch(() => undefined)
      if (answer) answers.push(answer.status)
    }
  })
  for (let times = 1; times <= 3; times++) {
    const [doomed = 0] = workersOf(hub).slice(-1)
    process.kill(doomed, 'SIGKILL')
    const before = answers.length
    await until(() => areBack(hub, times) && answers.length > before + 10)
  }
  isAsking = false
  await Promise.all(asking)
  t.same(new Set(answers), new Set([200]))
})

t.test(
  'a connection that a worker was about to get ends with the worker',
  { skip: withoutRedis },
  async (t) => {
    const { hub } = await startWorkers(t)
    const doomed = workersOf(hub)
    for (const pid of doomed) process.kill(pid, 'SIGSTOP')
    let closed = 0
    for (const _ of doomed) {
      const socket = connectTcp({ port: hub.mqttPort, host: '127.0.0.1' })
      t.teardown(() => socket.destroy())
      socket.on('error', () => undefined).on('close', () => closed++)
      await once(socket, 'connect')
    }
    // The primary hands one to each.
    await delay(500)
    for (const pid of doomed) process.kill(pid, 'SIGKILL')
    await until(() => closed === doomed.length)
    t.equal(closed, 2)
  },
)

t.test('a worker is killed under load: nothing acknowledged is lost', { skip: withoutRedis }, async (t) => {
  const { hub, ask, publisher, subscriber } = await startWorkers(t)
  const reads = await subscriber('radio/#')
  const stays = { reconnectPeriod: 100, clean: false }
  const listeners = []
  for (let index = 0; index < 4; index++)
    listeners.push(await connect(t, hub, reads, { ...stays, clientId: `player-${index}` }))
  for (const { client } of listeners) await client.subscribeAsync('radio/#', { qos: 1 })
  const studio = await connect(t, hub, await publisher([own]), { ...stays, clientId: 'studio' })
  const clients = await ask<Client[]>('clients.list')
  const [doomed = 0] = workersOf(hub)
  t.ok(clients.some(({ clientId, node }) => clientId.startsWith('player') && node.endsWith(`:${doomed}`)))

  const acknowledged: string[] = []
  const { publishAsync } = studio.client
  const total = 300
  for (let index = 0; index < total; index++) {
    const name = `load-${index}`
    if (index === 100) process.kill(doomed, 'SIGKILL')
    await publishAsync.call(studio.client, `inbox/${own}`, JSON.stringify({ ...control(livestream), name }), {
      qos: 1,
    })
    acknowledged.push(name)
  }
  t.equal(acknowledged.length, total)
  await until(() => areBack(hub, 1))
  for (const { received } of listeners) await received.until(({ json }) => json.name === `load-${total - 1}`)
  for (const { received } of listeners) {
    const names = new Set(received.all.map(({ json }) => json.name))
    t.same(
      acknowledged.filter((name) => !names.has(name)),
      [],
    )
  }
  t.equal((await ask<Client[]>('clients.list')).length, 5, 'the admin socket is still there')
  const body = await metricsOf(hub)
  t.match(body, /^hub_connections 5$/m)
  t.equal(await hub.stop('SIGTERM'), 0)
})

async function metricsOf(hub: { httpsPort: number }): Promise<string> {
  return (await get(hub, '/metrics')).text
}

/** Asks over a connection of its own: the primary hands connections to workers in turn. */
function get(
  { httpsPort: port }: { httpsPort: number },
  path: string,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const asked = request({ port, path, rejectUnauthorized: false, agent: false, timeout: 10_000 })
    asked.on('timeout', () => asked.destroy(new Error('no answer in time')))
    asked.on('error', reject).on('response', async (response) => {
      let text = ''
      try {
        for await (const chunk of response) text += chunk
        resolve({ status: response.statusCode ?? 0, text })
      } catch (error) {
        reject(error)
      }
    })
    asked.end()
  })
}
