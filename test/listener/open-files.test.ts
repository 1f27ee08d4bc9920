import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { call } from '../../cli/connection.ts'
import { maxSockets, socketsWithin } from '../../delivery/webhook/sockets.ts'
import { connectionsWithinOpenFiles } from '../../listener/open-files.ts'
import { connectPublisher } from '../clients.ts'
import { playing, station } from '../events.ts'
import { onRedis } from '../redis-server.ts'
import { shareSigningKeyOn } from '../signing-key.ts'
import { workersOn } from '../soak/workers/start-workers.ts'
import { spawnHub } from '../spawn-hub.ts'
import { type Issued, temporaryDirectory } from '../start-hub.ts'

const livestream = station(0, 0)
const institution = livestream.institution.id

t.test('open files bound connections, and a warning says so where all processes have too few', async (t) => {
  const warning = (openFiles: number, room: number, roomOfBoth: number) => [
    { wanted: 20_000, openFiles, room, roomOfBoth },
  ]
  const table: [openFiles: number, processes: number, ofOne: number, all: number, warnings: object[]][] = [
    [65_536, 1, 46_320, 61_760, []],
    [Infinity, 1, Infinity, Infinity, []],
    [20_000, 1, 12_168, 16_224, warning(20_000, 12_168, 16_224)],
    [20_000, 2, 12_168, 16_224, warning(20_000, 24_336, 32_448)],
    [20_000, 3, 12_168, 16_224, []],
    [1024, 1, 480, 640, warning(1024, 480, 640)],
  ]
  for (const [openFiles, processes, ofOne, all, warnings] of table) {
    const warned: unknown[] = []
    const log = { warn: (values: unknown) => warned.push(values) }
    const wanted = { incoming: 20_000, outgoing: maxSockets, processes }
    const { room, outgoing } = await connectionsWithinOpenFiles(wanted, log, async () => openFiles)
    t.same(room, { ofOne, all, open: 0 })
    t.equal(outgoing, Math.min(maxSockets, openFiles / 8))
    t.same(warned, warnings)
    t.ok(room.all + outgoing <= openFiles - Math.min(openFiles / 4, 2_048), 'the rest is for the store')
  }
})

onRedis('the open files of all workers count', async (t, redis) => {
  await shareSigningKeyOn(redis.url)
  const warning = 'open files allow fewer connections than HUB_MAX_CONNECTIONS'
  const warned = async (env: Record<string, string>) => {
    const home = await temporaryDirectory(t)
    const variables = { ...workersOn(redis.url), HUB_MAX_CONNECTIONS: '300', ...env }
    const hub = await spawnHub(t, home, variables, { openFiles: 512 })
    t.equal(await hub.stop('SIGTERM'), 0)
    return hub.messages.includes(warning)
  }
  t.ok(await warned({ HUB_WORKERS: '1' }), 'one process has not the files')
  t.notOk(await warned({}), 'two have them')
})

t.test('what is sent to webhooks keeps to the connections there may be', async (t) => {
  for (const allowed of [64, 128, 500, maxSockets, Infinity]) {
    const { slots, tests, kept } = socketsWithin(allowed)
    const most = slots.healthy.total + slots.failing.total + tests + 4 * kept
    t.ok(most <= allowed && most <= maxSockets, `${most} of ${allowed}`)
    t.ok(slots.healthy.perEndpoint >= 2 && slots.failing.perEndpoint >= 2)
  }
  t.equal(socketsWithin(maxSockets).slots.healthy.total, 512)
})

t.test('a flood of connections leaves the store the files it needs', async (t) => {
  const home = await temporaryDirectory(t)
  const hub = await spawnHub(
    t,
    home,
    { HUB_PUBLISH_RATE: '0', HUB_CONNECT_TIMEOUT: '60' },
    { openFiles: 512 },
  )
  t.ok(hub.messages.includes('open files allow fewer connections than HUB_MAX_CONNECTIONS'))
  const request = { role: 'publisher', label: 'studio', institutions: [institution] }
  const issued = await call(hub.adminSocket, 'credentials.add', request, 'test')
  if ('error' in issued) throw new Error(issued.error.message)
  const publisher = await connectPublisher(t, hub, issued.result as Issued, institution)
  await Promise.all([hub.mqttPort, hub.httpsPort].map((port) => flood(t, port, 500)))
  // LevelDB begins a new file every 4 MiB, so these 7.8 MB need new files.
  for (let sent = 0; sent < 20; sent++) {
    const event = playing(livestream, { title: 'x'.repeat(390_000) })
    t.equal((await publisher.publish(event)).outcome, 'published')
  }
  t.equal(await hub.stop('SIGTERM'), 0)
})

/** Opens `count` connections that send nothing. */
async function flood(t: Test, port: number, count: number): Promise<void> {
  const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1'))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
  })
  await Promise.all(sockets.map(ended))
}

/** Resolves when the socket is connected or refused. */
async function ended(socket: Socket): Promise<void> {
  socket.on('error', () => {})
  await once(socket, 'connect').catch(() => undefined)
}
