import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import { connect as connectTcp } from 'node:net'
import t from 'tap'
import { closed, connect } from '../../../clients.ts'
import { playing, playingTopic, station } from '../../../events.ts'
import { spawnHub } from '../../../spawn-hub.ts'
import { type Issued, startTestHub, type TestHub, temporaryDirectory } from '../../../start-hub.ts'
import { onEachStore, onStore } from '../../../stores.ts'

/*
 * `hubctl bans`: an address, the clients of a credential or a client id are kept out until the ban ends.
 */

const ban = (hub: TestHub, kind: string, value: string, seconds = 3600) =>
  hub.ask('bans.add', { kind, value, for: seconds, reason: 'a test' })

t.test('the clients of a banned credential are disconnected, and get CONNACK 5', async (t) => {
  const hub = await startTestHub(t)
  const [one, other] = [await hub.subscriber('radio/#'), await hub.subscriber('radio/#')]
  const { client } = await connect(t, hub, one)
  const { client: stays } = await connect(t, hub, other)
  const ended = closed(client)
  await ban(hub, 'user', one.username)
  await ended
  await t.rejects(connect(t, hub, one), { code: 5 })
  t.ok(stays.connected)
  t.match(
    hub.lines.find(({ msg }) => msg === 'log-in refused'),
    { reason: 'banned', username: one.username },
  )
  t.match(await hub.ask('bans.list'), [{ kind: 'user', value: one.username, reason: 'a test' }])
  t.same(await hub.ask('bans.remove', { value: one.username }), { value: one.username, removed: true })
  await connect(t, hub, one)
})

t.test('a ban ends by itself', async (t) => {
  const hub = await startTestHub(t)
  const one = await hub.subscriber('radio/#')
  await ban(hub, 'client', 'player-1')
  await t.rejects(connect(t, hub, one, { clientId: 'player-1' }), { code: 5 })
  await connect(t, hub, one, { clientId: 'player-2' })
  // It takes the place of the former one.
  await ban(hub, 'client', 'player-1', 0.1)
  await hub.until(async () => (await hub.ask<unknown[]>('bans.list')).length === 0)
  await connect(t, hub, one, { clientId: 'player-1' })
})

t.test('a banned address has no connection to any port', async (t) => {
  const hub = await startTestHub(t)
  const one = await hub.subscriber('radio/#')
  const { client } = await connect(t, hub, one)
  const ended = closed(client)
  await ban(hub, 'address', '127.0.0.0/8')
  await ban(hub, 'address', '::1')
  await ended
  for (const port of [hub.mqttPort, hub.httpsPort]) t.ok(await isClosedAtOnce(port))
  t.match(
    hub.lines.find(({ msg }) => msg === 'connection refused'),
    { reason: 'banned' },
  )
  for (const value of ['127.0.0.0/8', '::1']) await hub.ask('bans.remove', { value })
  await connect(t, hub, one)
})

t.test('a banned reader is refused, and blocks nobody else at its address', async (t) => {
  const hub = await startTestHub(t)
  const [one, other] = [await hub.reader('radio/#'), await hub.reader('radio/#')]
  t.equal(await statusOf(hub, one), 200)
  await ban(hub, 'user', one.username)
  for (let times = 0; times < 20; times++) t.not(await statusOf(hub, one), 200)
  t.equal(await statusOf(hub, other), 200)
})

t.test('what cannot be banned is said, and nothing is', async (t) => {
  const hub = await startTestHub(t)
  const addresses = [
    '192.0.2.300',
    '192.0.2.0/33',
    // Octal: this would be 8.0.2.1.
    '010.0.2.1',
    '127.1',
    '2130706433',
    // A whole network, although one address is meant.
    '192.0.2.7/8',
    // Everybody.
    '0.0.0.0/0',
    // The hub sees the IPv4 address of such a client: this ban would match nobody.
    '::ffff:192.0.2.7',
  ]
  for (const value of addresses) {
    await t.rejects(
      ban(hub, 'address', value),
      { message: /value must be an IP address, or a network/ },
      value,
    )
  }
  await t.rejects(ban(hub, 'user', 'studio@radio.example'), {
    message: 'there is no credential "studio@radio.example"',
  })
  await t.rejects(ban(hub, 'planet', 'Mars'), { message: /kind must be one of address, user, client/ })
  await t.rejects(ban(hub, 'client', 'a', -1), { message: /for must be a number of seconds/ })
  await t.rejects(hub.ask('bans.remove', { value: '192.0.2.1' }), { message: /ban of/ })
  t.same(await hub.ask('bans.list'), [])
})

const institution = station().institution.id
const willOf = (of: ReturnType<typeof station>) => ({
  topic: `inbox/${institution}`,
  payload: Buffer.from(JSON.stringify(playing(of))),
  qos: 1 as const,
  retain: false,
})
const retainedTopics = async (hub: TestHub) =>
  (await hub.ask<{ topic: string }[]>('retained.list')).map(({ topic }) => topic)
/** All addresses of 127.0.0.0/8 are this machine's. */
const from = (localAddress: string) => ({ localAddress, host: '127.0.0.1', servername: 'localhost' })

t.test('the will of a client whose credential, client id or address is banned is void', async (t) => {
  const hub = await startTestHub(t)
  const livestreams = [station(0, 0), station(0, 1), station(0, 2), station(0, 3)] as const
  const [first, second] = [await hub.publisher([institution]), await hub.publisher([institution])]
  const banned: [who: Issued, kind: string, value: string][] = [
    [first, 'client', 'studio-0'],
    [second, 'user', second.username],
    [first, 'address', '127.0.0.2'],
  ]
  for (const [index, [who, kind, value]] of banned.entries()) {
    const will = willOf(livestreams[index as 0 | 1 | 2])
    const at = kind === 'address' ? from(value) : {}
    const { client } = await connect(t, hub, who, { clientId: `studio-${index}`, will, ...at })
    const ended = closed(client)
    await ban(hub, kind, value)
    await ended
  }
  const { client } = await connect(t, hub, first, { clientId: 'studio-3', will: willOf(livestreams[3]) })
  client.stream.destroy()
  await hub.until(async () => (await retainedTopics(hub)).includes(playingTopic(livestreams[3])))
  t.same(await retainedTopics(hub), [playingTopic(livestreams[3])])
})

onStore(
  'redis',
  'a will of a node that is gone is void where its client is at a banned address',
  async (t, env) => {
    const home = await temporaryDirectory(t)
    const there = await spawnHub(t, home, env)
    const here = await startTestHub(t, env)
    const one = await here.publisher([institution])
    const livestreams = [station(0, 0), station(0, 1)] as const
    await connect(t, there, one, { clientId: 'bad', will: willOf(livestreams[0]), ...from('127.0.0.2') })
    await connect(t, there, one, { clientId: 'good', will: willOf(livestreams[1]), ...from('127.0.0.3') })
    await there.stop('SIGKILL')
    await ban(here, 'address', '127.0.0.2')
    await here.until(async () => (await retainedTopics(here)).includes(playingTopic(livestreams[1])))
    t.same(await retainedTopics(here), [playingTopic(livestreams[1])])
  },
)

onEachStore('a ban outlives a restart', async (t, env) => {
  const first = await startTestHub(t, env)
  await ban(first, 'client', 'player-1')
  await first.close()
  const next = await startTestHub(t, env, first.home)
  const one = await next.subscriber('radio/#')
  await t.rejects(connect(t, next, one, { clientId: 'player-1' }), { code: 5 })
})

onStore('redis', 'a ban counts on every node', async (t, env) => {
  const [here, there] = [await startTestHub(t, env), await startTestHub(t, env)]
  const one = await here.subscriber('radio/#')
  await there.until(async () => (await there.ask<unknown[]>('credentials.list')).length === 1)
  const { client } = await connect(t, there, one)
  const ended = closed(client)
  await ban(here, 'user', one.username)
  await ended
  await t.rejects(connect(t, there, one), { code: 5 })
})

function isClosedAtOnce(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connectTcp(port, '127.0.0.1', () => socket.write(Buffer.of(0x16, 3, 1, 0, 5)))
    socket.on('error', () => {})
    socket.on('close', () => resolve(socket.bytesRead === 0))
  })
}

function statusOf(hub: TestHub, { username, password }: Issued): Promise<number> {
  return new Promise((resolve, reject) => {
    const ca = readFileSync(hub.caPath)
    const options = { port: hub.httpsPort, path: '/now', ca, auth: `${username}:${password}`, agent: false }
    request({ host: 'localhost', ...options }, (answer) => {
      answer.resume()
      resolve(answer.statusCode ?? 0)
    })
      .on('error', reject)
      .end()
  })
}
