import { readFile } from 'node:fs/promises'
import { request } from 'node:https'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { ensureDevelopmentCertificates } from '../../../certs/development.ts'
import { call } from '../../../cli/connection.ts'
import { connect } from '../../clients.ts'
import { control, institutions, station } from '../../events.ts'
import { freePort } from '../../free-port.ts'
import { patienceMs } from '../../patience.ts'
import { startRedis, withoutRedis } from '../../redis-server.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { type Issued, temporaryDirectory } from '../../start-hub.ts'
import { comes } from '../../until.ts'
import { startBalancer, withoutBalancer } from './start-balancer.ts'

/*
 * Two nodes behind haproxy with deploy/haproxy.cfg. Operators upgrade them one after the other.
 */
const [institution = ''] = institutions

t.test(
  'nodes are replaced one by one, and nothing is lost',
  {
    skip: withoutRedis || withoutBalancer,
  },
  async (t) => {
    const redis = await startRedis(t)
    const home = await temporaryDirectory(t)
    const { ca, cert, key } = await ensureDevelopmentCertificates(join(home, 'certs'))
    const start = async (name: string, ports: { mqtt: number; https: number }) => {
      return spawnHub(t, home, {
        HUB_DATA_DIR: join(home, name),
        HUB_MQTT_PORT: String(ports.mqtt),
        HUB_HTTPS_PORT: String(ports.https),
        HUB_REDIS_URL: redis.url,
        HUB_PUBLIC_URL: 'https://hub.example',
        HUB_PROXY_PROTOCOL: 'true',
        HUB_TLS_CERT: cert,
        HUB_TLS_KEY: key,
      })
    }
    const portsOfA = { mqtt: await freePort(), https: await freePort() }
    const portsOfB = { mqtt: await freePort(), https: await freePort() }
    let a = await start('a', portsOfA)
    const b = await start('b', portsOfB)
    const balancer = await startBalancer(t, home, { a: portsOfA, b: portsOfB })

    const issue = (args: object) => ask<Issued>(a.adminSocket, 'credentials.add', { label: 'test', ...args })
    const listener = await issue({ role: 'subscriber', filters: ['radio/#'] })
    const studio = await issue({ role: 'publisher', institutions: [institution], classes: [] })
    while ((await ask<unknown[]>(b.adminSocket, 'credentials.list')).length < 2) await delay(20)

    const front = { mqttPort: balancer.mqtt, caPath: ca }
    const again = { reconnectPeriod: 100 }
    const direct = { mqttPort: portsOfA.mqtt, caPath: ca }
    await t.rejects(connect(t, direct, listener), 'without a PROXY header nobody gets in')
    const app = await connect(t, front, listener, { ...again, clientId: 'app', clean: false })
    await app.client.subscribeAsync('radio/+/control', { qos: 1 })
    const sender = await connect(t, front, studio, again)
    for (const path of ['/health', '/readyz']) t.equal(await statusOf(balancer.https, path, ca), 200)
    for (const port of [balancer.a, balancer.b]) t.equal(await statusOf(port, '/metrics', ca), 200)

    const sent: string[] = []
    const publishing = new AbortController()
    const published = publish()
    await app.received.count(5)
    t.equal(await a.stop('SIGTERM'), 0)
    await goesOn()
    await balancer.says('Server mqtt/a is DOWN')
    a = await start('a', portsOfA)
    await balancer.says('Server mqtt/a is UP') // an operator waits for this too
    t.equal(await b.stop('SIGTERM'), 0)
    await goesOn()
    publishing.abort()
    await published
    t.equal(await statusOf(balancer.https, '/health', ca), 200)

    const names = () => new Set(app.received.all.map(({ json }) => json.name))
    await comes(() => sent.every((name) => names().has(name)), patienceMs)
    t.same(
      sent.filter((name) => !names().has(name)),
      [],
      `all ${sent.length} events arrived`,
    )

    async function goesOn(): Promise<void> {
      const next = `state-${sent.length + 5}`
      await app.received.until(({ json }) => json.name === next)
    }

    /** Publishes control events, because an offline session gets every one of them later. */
    async function publish(): Promise<void> {
      while (!publishing.signal.aborted) {
        const name = `state-${sent.length + 1}`
        const event = control(station(), { name })
        await sender.client.publishAsync(`inbox/${institution}`, JSON.stringify(event), { qos: 1 })
        sent.push(name)
        await delay(20)
      }
    }
  },
)

function statusOf(port: number, path: string, ca: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    readFile(ca).then((trusted) => {
      request({ host: 'localhost', port, path, ca: trusted, agent: false }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
        .on('error', reject)
        .end()
    }, reject)
  })
}

async function ask<Result>(
  socket: string,
  command: string,
  args: Record<string, unknown> = {},
): Promise<Result> {
  const answer = await call(socket, command, args, 'tester')
  if ('error' in answer) throw new Error(answer.error.message)
  return answer.result as Result
}
