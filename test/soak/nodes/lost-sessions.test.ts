import { mkdir, readFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ensureDevelopmentCertificates } from '../../../certs/development.ts'
import { call } from '../../../cli/connection.ts'
import { sampleFeedPath } from '../../../config/sample-feed.ts'
import { closed, connect } from '../../clients.ts'
import { listen } from '../../listen.ts'
import { startFleet } from '../../nodes/fleet.ts'
import { startRedis, withoutRedis } from '../../redis-server.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { type Issued, temporaryDirectory } from '../../start-hub.ts'
import { startNetwork } from '../../store/slow-network.ts'
import { until } from '../../until.ts'

/* Sessions whose node dies, starts, or is cut off from Redis. They must end when they should, and not earlier. */

// The tests mostly wait, so several run at the same time.
t.jobs = 2

t.test('the sessions of two nodes that die together', { skip: withoutRedis }, async (t) => {
  const { a, b, c } = await startFleet(t, 3, { inTurn: true })
  const [one, other] = [await a.subscriber('radio/#'), await a.subscriber('radio/+/control')]
  await Promise.all([b.knows(2), c.knows(2)])
  for (const [node, name] of [
    [a, 'first'],
    [b, 'second'],
  ] as const) {
    for (const clean of [true, false]) {
      await connect(t, node, one, { clientId: `${name} ${clean ? 'clean' : 'kept'}`, clean })
    }
  }
  await until(async () => (await c.ask<unknown[]>('sessions.list')).length === 4)
  await Promise.all([a.kill(), b.kill()])
  await until(() => c.messages().filter((message) => message === 'a node is gone').length === 2)
  for (const name of ['first', 'second']) {
    await until(async () => (await c.connected(`${name} clean`)) === undefined)
    t.match(await c.connected(`${name} kept`), { connected: false, node: null })
    const { client } = await connect(t, c, other, { clientId: `${name} clean` })
    t.ok(client.connected, 'the client id of a clean session is free for others')
    await t.rejects(connect(t, c, other, { clientId: `${name} kept` }), { code: 2 })
  }
  await a.start()
  t.same(
    (await a.ask<{ clientId: string; connected: boolean }[]>('sessions.list'))
      .map(({ clientId, connected }) => [clientId, connected])
      .sort(),
    [
      ['first clean', true],
      ['first kept', false],
      ['second clean', true],
      ['second kept', false],
    ],
    'and so the store has it',
  )
})

t.test('a session that is dropped while its node is away is over', { skip: withoutRedis }, async (t) => {
  let network: Awaited<ReturnType<typeof startNetwork>> | undefined
  const { a, b } = await startFleet(t, 2, {
    async through(index, port) {
      if (index === 0) return `redis://127.0.0.1:${port}`
      network = await startNetwork(t, port)
      return network.url
    },
  })
  const subscriber = await a.subscriber('radio/#')
  await b.knows(1)
  const names = ['dropped', 'kept']
  const clients = await Promise.all(
    names.map(async (clientId) => (await connect(t, b, subscriber, { clientId, clean: false })).client),
  )
  for (const client of clients) await client.subscribeAsync('radio/#', { qos: 1 })
  await until(async () => (await a.ask<unknown[]>('sessions.list')).length === 2)
  network?.cut()
  await until(() => a.messages().includes('a node is gone'))
  await until(async () => (await a.connected('dropped'))?.connected === false)
  await a.ask('sessions.drop', { clientId: 'dropped' })
  network?.mend()
  await until(() => clients[0]?.connected === false)
  for (const node of [a, b]) {
    await until(async () => (await node.connected('kept'))?.connected === true)
    t.equal(await node.connected('dropped'), undefined)
  }
})

t.test('the clients of a node that joins while another starts', { skip: withoutRedis }, async (t) => {
  const one = await startWaiting(t)
  const starting = one.start('starting', one.feed)
  await one.isRead()
  const other = await one.start('other')
  const subscriber = await issue(other)
  const { client } = await connect(t, other, subscriber, { clientId: 'listener', clean: true })
  let isClosed = false
  closed(client).then(() => {
    isClosed = true
  })
  await one.goOn()
  const started = await starting
  // This credential is added after the start. When `other` knows the credential, `other` has read all changes of the
  // start.
  const { username } = await issue(started)
  await until(async () => 'result' in (await ask(other, 'credentials.show', { username })))
  t.equal(isClosed, false, 'stay connected')
})

t.test('a node that starts again while the others bury it', { skip: withoutRedis }, async (t) => {
  const one = await startWaiting(t)
  const [former, other] = [await one.start('again'), await one.start('other')]
  await former.stop('SIGKILL')
  const again = one.start('again', one.feed)
  await one.isRead()
  await until(() => other.messages.includes('a node is gone'))
  await one.goOn()
  t.ok((await again).mqttPort, 'starts')
})

interface Socket {
  adminSocket: string
}

function ask({ adminSocket }: Socket, command: string, args: Record<string, unknown>) {
  return call(adminSocket, command, args, 'tester')
}

async function issue(node: Socket): Promise<Issued> {
  const answer = await ask(node, 'credentials.add', {
    role: 'subscriber',
    label: 'test',
    filters: ['radio/#'],
  })
  if ('error' in answer) throw new Error(answer.error.message)
  return answer.result as Issued
}

/** Starts Redis for nodes. A node with the settings `feed` waits in its start until `goOn`. */
async function startWaiting(t: Test) {
  const redis = await startRedis(t)
  const home = await temporaryDirectory(t)
  const tls = await ensureDevelopmentCertificates(join(home, 'feed-certs'), [])
  const [key, cert] = await Promise.all([readFile(tls.key), readFile(tls.cert)])
  let waiting: ServerResponse | undefined
  const server = createServer({ key, cert }, (_, response) => {
    waiting = response
  })
  const port = await listen(t, server)
  return {
    feed: { HUB_FEED: `https://localhost:${port}/`, HUB_FEED_CA: tls.ca },
    async start(name: string, settings: Record<string, string> = {}) {
      const directory = join(home, name)
      await mkdir(directory, { recursive: true })
      return spawnHub(t, directory, {
        HUB_REDIS_URL: redis.url,
        HUB_PUBLIC_URL: 'https://hub.example',
        ...settings,
      })
    },
    /** Resolves when a node waits for its feed. */
    isRead: () => until(() => waiting !== undefined),
    async goOn(): Promise<void> {
      waiting?.end(await readFile(sampleFeedPath))
    },
  }
}
