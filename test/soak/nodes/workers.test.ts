import { copyFile, readFile, stat } from 'node:fs/promises'
import { request } from 'node:https'
import { connect as connectTcp } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { ensureDevelopmentCertificates } from '../../../certs/development.ts'
import { connect, connectPublisher } from '../../clients.ts'
import { control, institutions, station } from '../../events.ts'
import { until, withCredentials } from '../../nodes/fleet.ts'
import { startRedis, withoutRedis } from '../../redis-server.ts'
import { shareSigningKeyOn } from '../../signing-key.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { askNode, temporaryDirectory } from '../../start-hub.ts'

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
  const env = { ...envOf(redis.url), HUB_MQTT_PORT: String(hub.mqttPort) }
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
  for (let times = 0; times < 4; times++) {
    const status = await ask<{ connections: number; counters: Record<string, number>; budget: object }>(
      'status',
    )
    t.equal(status.connections, 7)
    t.equal(status.counters['hub_events_total{outcome=published}'], 1)
    t.match(status.budget, { count: 1 })
    const body = await metricsOf(hub)
    t.match(body, /^hub_connections 7$/m)
    t.match(body, /^hub_events_total\{outcome="published"\} 1$/m)
    t.match(body, /^hub_feed_ok 1$/m)
    t.match(body, /^hub_budget_seconds_count 1$/m)
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

t.test('a TLS session that one worker began is resumed by each', { skip: withoutRedis }, async (t) => {
  const { hub } = await startWorkers(t)
  for (const port of [hub.mqttPort, hub.httpsPort]) {
    const ca = await readFile(hub.caPath)
    const first = connectTls({ port, host: 'localhost', ca })
    const session = await new Promise<Buffer>((resolve) => first.once('session', resolve))
    first.destroy()
    for (let times = 0; times < 4; times++) {
      const socket = connectTls({ port, host: 'localhost', ca, session })
      await new Promise((resolve) => socket.once('secureConnect', resolve))
      t.ok(socket.isSessionReused())
      socket.destroy()
    }
  }
})

t.test('so it is after a new certificate', { skip: withoutRedis }, async (t) => {
  const { hub, home } = await startWorkers(t)
  const others = await ensureDevelopmentCertificates(await temporaryDirectory(t), ['127.0.0.1'])
  await copyFile(others.key, join(home, 'certs', 'server-key.pem'))
  await copyFile(others.cert, join(home, 'certs', 'server.pem'))
  await until(() => hub.messages.filter((message) => message === 'certificate replaced').length === 2)
  const ca = await readFile(others.ca)
  const first = connectTls({ port: hub.mqttPort, host: 'localhost', ca })
  const session = await new Promise<Buffer>((resolve) => first.once('session', resolve))
  first.destroy()
  for (let times = 0; times < 4; times++) {
    const socket = connectTls({ port: hub.mqttPort, host: 'localhost', ca, session })
    await new Promise((resolve) => socket.once('secureConnect', resolve))
    t.ok(socket.isSessionReused())
    socket.destroy()
  }
})

t.test('limits hold for all workers together', { skip: withoutRedis }, async (t) => {
  const limits = {
    HUB_MAX_CONNECTIONS: '6',
    HUB_MAX_CONNECTIONS_PER_ADDRESS: '4',
    HUB_PROXY_PROTOCOL: 'true',
    HUB_CONNECT_TIMEOUT: '300',
  }
  const { hub } = await startWorkers(t, limits)
  const ca = await readFile(hub.caPath)
  const open: TLSSocket[] = []
  const enter = async (address: string) => {
    const socket = await connectThrough(t, { port: hub.mqttPort, ca, address })
    if (socket) open.push(socket)
    // The other worker hears of it some milliseconds later.
    await delay(100)
    return socket !== undefined
  }
  for (let times = 0; times < 4; times++) t.ok(await enter('192.0.2.1'))
  for (let times = 0; times < 4; times++) t.notOk(await enter('192.0.2.1'), 'the address has four')
  for (let times = 0; times < 2; times++) t.ok(await enter('192.0.2.2'))
  for (let times = 0; times < 4; times++) t.notOk(await enter('192.0.2.3'), 'there are six')
  open.pop()?.destroy()
  open.pop()?.destroy()
  await delay(200)
  t.ok(await enter('192.0.2.3'), 'a place is free again')

  // A worker that dies frees its places.
  for (const pid of workersOf(hub)) process.kill(pid, 'SIGKILL')
  await until(() => hub.messages.filter((message) => message === back).length === 2)
  for (let times = 0; times < 4; times++) t.ok(await enter('192.0.2.1'))
  t.notOk(await enter('192.0.2.1'))
})

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
  await until(() => hub.messages.includes(back))
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

const back = 'the worker accepts clients again'

function envOf(url: string): Record<string, string> {
  return { HUB_REDIS_URL: url, HUB_PUBLIC_URL: 'https://hub.example', HUB_WORKERS: '2' }
}

async function startWorkers(t: Test, env: Record<string, string> = {}) {
  const redis = await startRedis(t)
  await shareSigningKeyOn(redis.url)
  const home = await temporaryDirectory(t)
  const hub = await spawnHub(t, home, { ...envOf(redis.url), ...env })
  const ask = <Result>(command: string, args: Record<string, unknown> = {}): Promise<Result> =>
    askNode(hub.adminSocket, command, args)
  return { redis, home, hub, ask, ...withCredentials(ask) }
}

/** The process ids of the workers of the hub that have joined Redis so far. */
function workersOf(hub: { lines: Record<string, unknown>[] }): number[] {
  return hub.lines.filter(({ msg }) => msg === 'joined the other nodes').map(({ pid }) => Number(pid))
}

function metricsOf(hub: { httpsPort: number; caPath: string }): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = request({ port: hub.httpsPort, path: '/metrics', rejectUnauthorized: false, agent: false })
    asked.on('error', reject).on('response', async (response) => {
      let text = ''
      for await (const chunk of response) text += chunk
      resolve(text)
    })
    asked.end()
  })
}

/** Connects like a load balancer, for a client with this address. Undefined: the hub lets it not in. */
function connectThrough(
  t: Test,
  { port, ca, address }: { port: number; ca: Buffer; address: string },
): Promise<TLSSocket | undefined> {
  const socket = connectTcp({ port, host: '127.0.0.1' })
  socket.write(`PROXY TCP4 ${address} 127.0.0.1 5000 ${port}\r\n`)
  const tls = connectTls({ socket, servername: 'localhost', ca })
  t.teardown(() => tls.destroy())
  return new Promise((resolve) => {
    tls.once('secureConnect', () => resolve(tls))
    tls.once('error', () => resolve(undefined))
    tls.once('close', () => resolve(undefined))
  })
}
