import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { call } from '../../cli/connection.ts'
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
    const table: [wanted: number, openFiles: number, room: number, warnings: object[]][] = [
      [20_000, 65_536, 20_000, []],
      [20_000, Infinity, 20_000, []],
      [20_000, 1024, 384, [{ wanted: 20_000, openFiles: 1024, room: 384 }]],
      [384, 1024, 384, []],
    ]
    for (const [wanted, openFiles, room, warnings] of table) {
      const warned: object[] = []
      const log = { warn: (values: object) => warned.push(values) }
      t.equal(await connectionsWithinOpenFiles(wanted, log, async () => openFiles), room)
      t.same(warned, warnings)
    }
  },
)

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
  // LevelDB begins another file every 4 MiB.
  for (let sent = 0; sent < 20; sent++) {
    const event = playing(livestream, { title: 'x'.repeat(390_000) })
    t.equal((await publisher.publish(event)).outcome, 'published')
  }
  t.equal(await hub.stop('SIGTERM'), 0)
})

/** So many connections that say nothing. */
async function flood(t: Test, port: number, count: number): Promise<void> {
  const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1'))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
  })
  await Promise.all(sockets.map(ended))
}

/** Connected, or refused. */
async function ended(socket: Socket): Promise<void> {
  socket.on('error', () => {})
  await once(socket, 'connect').catch(() => undefined)
}
