import { copyFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import t from 'tap'
import { ensureDevelopmentCertificates } from '../../../certs/development.ts'
import { storeKeys } from '../../../store/keys.ts'
import { withoutRedis } from '../../redis-server.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { startTestHub, temporaryDirectory } from '../../start-hub.ts'
import { openRedis } from '../../store/open-redis.ts'
import { until } from '../../until.ts'
import { areBack, startWorkers, workersOf } from './start-workers.ts'

/*
 * TLS sessions are resumed by every worker, also after a restart and with another certificate.
 */

t.test('a TLS session that one worker began is resumed by each', { skip: withoutRedis }, async (t) => {
  const { hub } = await startWorkers(t)
  const ca = await readFile(hub.caPath)
  for (const port of [hub.mqttPort, hub.httpsPort]) t.ok(await isResumed(port, ca, await sessionOf(port, ca)))
})

t.test('so it is after a new certificate', { skip: withoutRedis }, async (t) => {
  const { hub, home } = await startWorkers(t)
  const former = await sessionOf(hub.mqttPort, await readFile(hub.caPath))
  const others = await ensureDevelopmentCertificates(await temporaryDirectory(t), ['127.0.0.1'])
  await copyFile(others.key, join(home, 'certs', 'server-key.pem'))
  await copyFile(others.cert, join(home, 'certs', 'server.pem'))
  await until(() => hub.messages.filter((message) => message === 'certificate replaced').length === 2)
  const ca = await readFile(others.ca)
  t.ok(await isResumed(hub.mqttPort, ca, await sessionOf(hub.mqttPort, ca)))
  t.ok(await isResumed(hub.mqttPort, ca, former), 'also one that began with the former certificate')
})

t.test('so it is after a restart', { skip: withoutRedis }, async (t) => {
  const { hub, home, env } = await startWorkers(t)
  const ca = await readFile(hub.caPath)
  const session = await sessionOf(hub.mqttPort, ca)
  t.equal(await hub.stop('SIGTERM'), 0)
  const next = await spawnHub(t, home, { ...env, HUB_MQTT_PORT: String(hub.mqttPort) })
  t.ok(await isResumed(next.mqttPort, ca, session))
})

t.test('so it is after a restart of a single node without Redis', async (t) => {
  const home = await temporaryDirectory(t)
  const first = await startTestHub(t, {}, home)
  const ca = await readFile(first.caPath)
  const session = await sessionOf(first.mqttPort, ca)
  await first.close()
  const next = await startTestHub(t, {}, home)
  t.ok(await isResumed(next.mqttPort, ca, session))
})

t.test(
  'a new key is that of all workers, also of one that starts later',
  { skip: withoutRedis },
  async (t) => {
    const { hub, redis } = await startWorkers(t)
    const ca = await readFile(hub.caPath)
    const former = await sessionOf(hub.mqttPort, ca)
    const store = await openRedis(t, redis.url)
    const key = `${storeKeys.ticketKey.prefix}current`
    await store.commit([{ put: key, value: `${Date.now()} ${Buffer.alloc(48, 7).toString('base64')}` }])
    await until(async () => !(await isResumed(hub.mqttPort, ca, former)))
    const [doomed = 0] = workersOf(hub)
    process.kill(doomed, 'SIGKILL')
    await until(() => areBack(hub, 1))
    t.ok(await isResumed(hub.mqttPort, ca, await sessionOf(hub.mqttPort, ca)))
  },
)

/** A session of a new connection. */
async function sessionOf(port: number, ca: Buffer): Promise<Buffer> {
  const socket = connectTls({ port, host: 'localhost', ca })
  const session = await new Promise<Buffer>((resolve) => socket.once('session', resolve))
  socket.destroy()
  return session
}

/** Whether four connections in a row, which go to both workers, resume the session. */
async function isResumed(port: number, ca: Buffer, session: Buffer): Promise<boolean> {
  for (let times = 0; times < 4; times++) {
    const socket = connectTls({ port, host: 'localhost', ca, session })
    await new Promise((resolve) => socket.once('secureConnect', resolve))
    const isReused = socket.isSessionReused()
    socket.destroy()
    if (!isReused) return false
  }
  return true
}
