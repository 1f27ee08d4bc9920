import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { call } from '../../cli/connection.ts'
import { maxSockets, socketsWithin } from '../../delivery/webhook/sockets.ts'
import { connectionsWithinOpenFiles } from '../../listener/open-files.ts'
import { connectPublisher } from '../clients.ts'
import { playing, station } from '../events.ts'
import { spawnHub } from '../spawn-hub.ts'
import { type Issued, temporaryDirectory } from '../start-hub.ts'

const livestream = station(0, 0)
const institution = livestream.institution.id

t.test(
  'there are as many connections as wanted, or as there are open files for, and a warning',
  async (t) => {
    const wanted = { incoming: 20_000, outgoing: maxSockets }
    const table: [openFiles: number, incoming: number, outgoing: number, warnings: object[]][] = [
      [65_536, 20_000, maxSockets, []],
      [Infinity, 20_000, maxSockets, []],
      [20_000, 6_636, maxSockets, [{ wanted: 20_000, openFiles: 20_000, room: 6_636 }]],
      [1024, 320, 128, [{ wanted: 20_000, openFiles: 1024, room: 320 }]],
    ]
    for (const [openFiles, incoming, outgoing, warnings] of table) {
      const warned: unknown[] = []
      const log = { warn: (values: unknown) => warned.push(values) }
      const allowed = await connectionsWithinOpenFiles(wanted, log, async () => openFiles)
      t.same(allowed, { incoming, outgoing })
      t.same(warned, warnings)
      t.ok(2 * allowed.incoming + allowed.outgoing <= (openFiles * 3) / 4, 'the rest is for the store')
    }
  },
)

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
