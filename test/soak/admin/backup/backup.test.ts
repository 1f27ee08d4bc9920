import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { prepareGround } from '../../../../bench/peers/ground.ts'
import { storeKeys } from '../../../../store/keys.ts'
import { ask, entriesOf, fill, isAllThere } from '../../../admin/backup/filled.ts'
import { runHubctl } from '../../../cli/run-hubctl.ts'
import { connect } from '../../../clients.ts'
import { pushing, startReceiver } from '../../../receiver.ts'
import { startRedis } from '../../../redis-server.ts'
import { spawnHub } from '../../../spawn-hub.ts'
import { temporaryDirectory } from '../../../start-hub.ts'

/** `BACKUP_FULL=1` moves a large hub, and prints the time of each `hubctl` command. */
const [livestreams, size] = process.env.BACKUP_FULL
  ? [10_000, { sessions: 10_000, credentials: 1_000, webhooks: 50 }]
  : [20, { sessions: 3, credentials: 4, webhooks: 2 }]

t.test('what a hub has stored goes to Redis and back, and nothing is missing', async (t) => {
  const ground = await prepareGround(livestreams)
  t.teardown(ground.remove)
  const redis = await startRedis(t)
  const receiverHome = await temporaryDirectory(t)
  const down = await startReceiver(t, receiverHome)
  await down.close()
  const env = { ...pushing(down), HUB_FEED: ground.feedPath, HUB_PUBLISH_RATE: '0' }
  const onRedis = { ...env, HUB_REDIS_URL: redis.url, HUB_PUBLIC_URL: 'https://hub.example' }
  const homes = await Promise.all([1, 2, 3].map(() => temporaryDirectory(t)))
  const [home = '', home2 = '', home3 = ''] = homes
  const hubctl = async (socket: string, ...words: string[]) => {
    const began = performance.now()
    const ran = await runHubctl(['--socket', socket, ...words])
    t.match(ran, { code: 0, stderr: '' })
    t.comment(`${words[0]}: ${Math.round(performance.now() - began)} ms: ${ran.stdout.trim()}`)
  }

  let first = await spawnHub(t, home, env)
  const all = ground.institutions.flatMap((institution) => institution.livestreams)
  const filled = await fill(t, first, all, { ...size, webhookPort: down.port })
  // What the hub has learnt of livestreams is written at the end of a node, or once an hour.
  await first.stop('SIGTERM')
  first = await spawnHub(t, home, env)
  const readers = await Promise.all([1, 2, 3].map(() => connect(t, first, filled.app)))
  for (const { client } of readers) await client.subscribeAsync('radio/#')
  const file = join(home, 'hub.export')
  await hubctl(first.adminSocket, 'export', file)
  t.equal((await stat(file)).mode & 0o777, 0o600, 'nobody else reads the file')
  t.ok(
    readers.every(({ client }) => client.connected),
    'readers stay',
  )
  for (const { client } of readers) await client.endAsync()

  const second = await spawnHub(t, home2, onRedis)
  await hubctl(second.adminSocket, 'import', file)
  const back = join(home2, 'back.export')
  await hubctl(second.adminSocket, 'export', back)
  const third = await spawnHub(t, home3, env)
  await hubctl(third.adminSocket, 'import', back)
  for (const node of [first, second, third]) await node.stop('SIGTERM')
  const [before, after] = await Promise.all([home, home3].map((at) => entriesOf(join(at, 'data', 'store'))))
  t.comment(`${before?.size} entries`)
  t.same([...(after?.keys() ?? [])], [...(before?.keys() ?? [])], 'the same keys')
  const differing = [...(before ?? [])].filter(([key, value]) => after?.get(key) !== value)
  const { prefix: ownKey } = storeKeys.ticketKey
  t.same(
    differing.filter(([key]) => !key.startsWith(ownKey)),
    [],
    'with the same values, but for the key of TLS tickets: no export has it',
  )
  const receiver = await startReceiver(t, receiverHome, { port: down.port })
  const again = await spawnHub(t, home3, env)
  t.match(await ask(again, 'audit', { action: 'credentials.add' }), { length: size.credentials })
  await isAllThere(t, again, filled)
  const paths = Array.from({ length: size.webhooks }, (_, nth) => `/${nth}`)
  const eventsAt = (at: string) =>
    receiver.received.flatMap(({ path, event }) => (path === at ? [event.title] : []))
  await receiver.until(() => paths.every((path) => eventsAt(path).length >= 2))
  const wrong = paths.filter((path) => eventsAt(path).join() !== 'Announced,After')
  t.same(wrong, [], 'every webhook gets what waited for it, and goes on')
})

t.test('a node that finds an empty Redis beside what it stored before says how to move it', async (t) => {
  const redis = await startRedis(t)
  const home = await temporaryDirectory(t)
  await (await spawnHub(t, home)).stop('SIGTERM')
  const node = await spawnHub(t, home, { HUB_REDIS_URL: redis.url, HUB_PUBLIC_URL: 'https://hub.example' })
  const [warning = ''] = node.messages.filter((message) => message.startsWith('Redis is empty'))
  const [, dataDir, file] = /HUB_DATA_DIR=(\S+) hubctl export (\S+) --stopped && /.exec(warning) ?? []
  t.equal(dataDir, join(home, 'data'))
  t.match(warning, `HUB_DATA_DIR=${dataDir} hubctl import ${file}`)
})
