import { readFile, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { join } from 'node:path'
import type { IClientOptions } from 'mqtt'
import t from 'tap'
import { closed, connect } from '../../clients.ts'
import { withoutRedis } from '../../redis-server.ts'
import { temporaryDirectory } from '../../start-hub.ts'
import { until } from '../../until.ts'
import { startBalancer, withoutBalancer } from '../deploy/start-balancer.ts'
import { startWorkers } from './start-workers.ts'

/*
 * A hub with two workers behind haproxy with deploy/haproxy.cfg (PROXY protocol 2): its limits and bans see the addresses
 * of clients, in both workers.
 */

interface Client {
  node: string
  address: string
}

t.test(
  'limits and bans see the addresses of clients',
  { skip: withoutRedis || withoutBalancer },
  async (t) => {
    const directory = await temporaryDirectory(t)
    const config = join(directory, 'hub.json')
    await writeFile(config, JSON.stringify({ proxyFrom: ['127.0.0.1'], loginFailures: 6 }))
    const { hub, home, ask, subscriber } = await startWorkers(t, {
      HUB_PROXY_PROTOCOL: 'true',
      HUB_CONFIG: config,
      HUB_MAX_CONNECTIONS_PER_ADDRESS: '4',
    })
    const ports = { mqtt: hub.mqttPort, https: hub.httpsPort }
    const balancer = await startBalancer(t, home, { a: ports, b: ports })
    const front = { mqttPort: balancer.mqtt, caPath: hub.caPath }
    const login = await subscriber('radio/#')
    const at = (localAddress: string) => ({ localAddress, family: 4 }) as IClientOptions
    const clients = () => ask<Client[]>('clients.list')

    const open = []
    for (let times = 0; times < 4; times++) open.push(await connect(t, front, login, at('127.0.0.2')))
    await until(async () => (await clients()).length === 4)
    t.same(new Set((await clients()).map(({ address }) => address)), new Set(['127.0.0.2']))
    t.equal(new Set((await clients()).map(({ node }) => node)).size, 2, 'they are at both workers')
    for (let times = 0; times < 4; times++)
      await t.rejects(connect(t, front, login, at('127.0.0.2')), 'it has four')
    const other = await connect(t, front, login, at('127.0.0.3'))
    await t.rejects(connect(t, { ...front, mqttPort: hub.mqttPort }, login), 'there must be a header')
    await t.rejects(
      connect(t, { ...front, mqttPort: hub.mqttPort }, login, at('127.0.0.4')),
      'another than the load balancer',
    )

    // Log-ins that fail are counted for the client, whichever worker it comes to.
    const wrong = { ...login, password: 'guessed' }
    for (let times = 0; times < 6; times++)
      await t.rejects(connect(t, front, wrong, at('127.0.0.5')), { code: 4 })
    const isKnown = async () =>
      connect(t, front, wrong, at('127.0.0.5')).then(
        () => false,
        ({ code }) => code === 3,
      )
    // One worker may know before the other. Of four connections in a row, both get some.
    await until(async () => {
      for (let times = 0; times < 4; times++) if (!(await isKnown())) return false
      return true
    })
    await connect(t, front, login, at('127.0.0.6'))

    const ended = open.map(({ client }) => closed(client))
    await ask('bans.add', { kind: 'address', value: '127.0.0.2', for: 3600, reason: 'a test' })
    await Promise.all(ended)
    for (let times = 0; times < 4; times++) await t.rejects(connect(t, front, login, at('127.0.0.2')))
    t.ok(other.client.connected)

    for (let times = 0; times < 4; times++) t.equal(await statusOf(balancer.https, hub.caPath), 200)
  },
)

async function statusOf(port: number, caPath: string): Promise<number | undefined> {
  const ca = await readFile(caPath)
  return new Promise((resolve, reject) => {
    request({ host: 'localhost', port, path: '/readyz', ca, agent: false }, (answer) => {
      answer.resume()
      resolve(answer.statusCode)
    })
      .on('error', reject)
      .end()
  })
}
