import { copyFile, readFile, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import tls from 'node:tls'
import t from 'tap'
import { ensureDevelopmentCertificates } from '../../../certs/development.ts'
import { sampleFeedPath } from '../../../config/sample-feed.ts'
import { version } from '../../../config/version.ts'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { closed, connect, connectPublisher } from '../../clients.ts'
import { playing, playingTopic, station } from '../../events.ts'
import { pushing, startReceiver, webhookBody } from '../../receiver.ts'
import { stall } from '../../stall.ts'
import { startTestHub, type TestHub, temporaryDirectory } from '../../start-hub.ts'
import { onEachStore, onStore } from '../../stores.ts'

const livestream = station(0, 0)
const institution = livestream.institution.id

t.test('stage prod warns about what is only for trying out', async (t) => {
  const warned = async (env: Record<string, string>) => {
    const { lines } = await startTestHub(t, env)
    return lines.flatMap(({ level, problem }) => (level === 40 && problem !== undefined ? [problem] : []))
  }
  t.match(await warned({ HUB_STAGE: 'prod' }), [/^HUB_FEED is unset/, /^HUB_TLS_CERT is unset/])
  t.same(await warned({}), [])
  const directory = t.testdir()
  const certificates = await ensureDevelopmentCertificates(directory)
  const own = { HUB_TLS_CERT: certificates.cert, HUB_TLS_KEY: certificates.key }
  const feed = join(directory, 'feed.json')
  await copyFile(sampleFeedPath, feed)
  t.same(await warned({ HUB_STAGE: 'prod', HUB_FEED: feed, ...own }), [])
})

t.test('hubctl config shows the ports, the URL and the certificate that are in effect', async (t) => {
  const hub = await startTestHub(t)
  const certs = join(hub.home, 'certs')
  t.match(await hub.ask('config'), {
    mqttPort: hub.mqttPort,
    httpsPort: hub.httpsPort,
    publicUrl: `https://localhost:${hub.httpsPort}`,
    tlsCert: join(certs, 'server.pem'),
    tlsKey: join(certs, 'server-key.pem'),
    tlsCa: join(certs, 'ca.pem'),
  })
  const { cert, key } = await ensureDevelopmentCertificates(t.testdir())
  const env = { HUB_TLS_CERT: cert, HUB_TLS_KEY: key, HUB_PUBLIC_URL: 'https://hub.example' }
  const configured = await (await startTestHub(t, env)).ask<object>('config')
  t.match(configured, { publicUrl: 'https://hub.example', tlsCert: cert, tlsKey: key })
  t.notOk('tlsCa' in configured, 'clients need no CA of their own')
})

t.test('without any good feed events are blocked, and a refresh mends it', async (t) => {
  const home = await temporaryDirectory(t)
  const feed = join(home, 'feed.json')
  const hub = await startTestHub(t, { HUB_FEED: feed }, home)
  t.match(await hub.ask('status'), { feed: { items: 0, loadedAt: null, ok: false } })
  const publisher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  const report = await publisher.publish(playing(livestream))
  t.match(report, {
    outcome: 'blocked',
    statuses: { blocked: 1 },
    errors: [{ errorCode: 'feed.unavailable' }],
  })

  await copyFile(sampleFeedPath, feed)
  t.match(await hub.ask('feed.refresh', { force: false }), { ok: true })
  t.equal((await publisher.publish(playing(livestream))).outcome, 'published')
})

t.test('a dry run says what would happen, and changes nothing', async (t) => {
  const hub = await startTestHub(t)
  const payload = Buffer.from(JSON.stringify(playing(livestream))).toString('base64')
  const good = await hub.ask('check', { payload, institution })
  t.match(good, { outcome: 'published', id: null, topics: [playingTopic(livestream)] })
  const bad = await hub.ask('check', { payload, institution: station(1, 0).institution.id })
  t.match(bad, { outcome: 'blocked', topics: [] })
  t.same(await hub.ask('retained.list'), [])
})

onEachStore('status tells what the node does', async (t, store, driver) => {
  const hub = await startTestHub(t, store)
  const publisher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  await publisher.publish(playing(livestream))
  t.match(await hub.ask('status'), {
    node: String,
    version,
    stage: 'test',
    uptime: Number,
    store: { driver, ok: true, problem: null },
    feed: { items: Number, loadedAt: /Z$/, ok: true },
    connections: 1,
    budget: { count: 1, p50: Number, p99: Number },
    counters: { 'hub_events_total{outcome=published}': 1 },
  })
})

onStore('redis', 'a node that was held up for a moment refuses no command', async (t, store) => {
  const hub = await startTestHub(t, store)
  // The answer of Redis comes while the node is held up, wherever the command is by then.
  for (const ms of [1, 2, 3, 4, 6, 8]) {
    const answer = hub.ask('credentials.list')
    await delay(ms)
    stall(1_300)
    t.same(await answer, [])
  }
})

t.test('status names the CA that users are told to trust', async (t) => {
  const { cert, key, ca } = await ensureDevelopmentCertificates(t.testdir())
  const told = async (env: Record<string, string>) => {
    const hub = await startTestHub(t, env)
    const { certificate } = await hub.ask<{ certificate: { ca: string | null } }>('status')
    return { hub, ca: certificate.ca }
  }
  const own = { HUB_TLS_CERT: cert, HUB_TLS_KEY: key }
  t.equal((await told({ ...own, HUB_TLS_CA: ca })).ca, ca)
  t.equal((await told(own)).ca, null, 'they trust it already')
  t.equal((await told({ HUB_TLS_CA: ca })).ca, ca, 'whatever the certificate')
  const development = await told({})
  t.equal(development.ca, join(development.hub.home, 'certs', 'ca.pem'))
})

t.test('a node that starts again in its process has a new start', async (t) => {
  const home = await temporaryDirectory(t)
  const startOf = async (hub: TestHub) => {
    const { text } = await (await openApi(t, hub)).call('GET', '/metrics')
    return Number(/^hub_start_time_seconds (\S+)$/m.exec(text)?.[1])
  }
  const first = await startTestHub(t, {}, home)
  const firstStart = await startOf(first)
  await first.close()
  const again = performance.now()
  const second = await startTestHub(t, {}, home)
  t.ok((await startOf(second)) > firstStart, 'for Prometheus')
  const { uptime } = await second.ask<{ uptime: number }>('status')
  t.ok(uptime <= Math.round((performance.now() - again) / 1000), 'for hubctl status')
})

onEachStore('an operator sees clients, disconnects them and clears retained messages', async (t, store) => {
  const hub = await startTestHub(t, store)
  const login = await hub.publisher([institution])
  const publisher = await connectPublisher(t, hub, login, institution)
  await publisher.publish(playing(livestream))
  const clients = await hub.ask<{ clientId: string }[]>('clients.list')
  t.match(clients, [
    { username: login.username, address: '127.0.0.1', subscriptions: [`feedback/${institution}`] },
  ])
  t.match(await hub.ask('retained.clear', { topic: playingTopic(livestream) }), { cleared: true })
  t.same(await hub.ask('retained.list', { filter: 'radio/#' }), [])
  const gone = closed(publisher.client)
  await hub.ask('clients.disconnect', { clientId: clients[0]?.clientId })
  await gone
  const actions = (await hub.ask<{ action: string; who: string }[]>('audit')).map(({ action }) => action)
  t.same(actions, ['credentials.add', 'retained.clear', 'clients.disconnect'])
})

t.test('when a node stops, MQTT clients do not wait for a webhook that answers late', async (t) => {
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  const hub = await startTestHub(t, pushing(receiver), home)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, institution)
  const publish = () =>
    api.call('POST', '/events/de.org.hub.v1.radio.track.playing', { token, body: playing(livestream) })
  await publish() // makes the topic
  await api.call('POST', '/subscriptions', {
    token,
    body: webhookBody(receiver.url('/hook'), livestream.id),
  })
  const held: ServerResponse[] = []
  receiver.behave((_pushed, response) => void held.push(response))
  await publish()
  await receiver.until((received) => received.length === 1)
  const { client } = await connect(t, hub, await hub.subscriber('radio/#'))
  const stopped = hub.close()
  await closed(client)
  t.equal(held[0]?.closed, false, 'the delivery is still under way')
  held[0]?.writeHead(201).end()
  await stopped
  const again = await startTestHub(t, pushing(receiver), home)
  t.match(await again.ask('queues.list'), [{ state: 'idle', pending: 0 }], 'its end was stored')
})

t.test('a replaced certificate serves new connections and leaves the old ones open', async (t) => {
  const home = await temporaryDirectory(t)
  const hub = await startTestHub(t, {}, home)
  const app = await connect(t, hub, await hub.subscriber('radio/#'))
  const fingerprint = () =>
    new Promise<string>((resolve, reject) => {
      const socket = tls.connect({ port: hub.mqttPort, host: '127.0.0.1', rejectUnauthorized: false }, () => {
        resolve(socket.getPeerCertificate().fingerprint256)
        socket.destroy()
      })
      socket.once('error', reject)
    })
  const before = await fingerprint()
  const other = await ensureDevelopmentCertificates(join(home, 'other'))
  await writeFile(join(home, 'certs', 'server-key.pem'), await readFile(other.key))
  await writeFile(join(home, 'certs', 'server.pem'), await readFile(other.cert))
  let after = before
  while (after === before) after = await fingerprint()
  t.not(after, before)
  t.ok(app.client.connected)
})

t.test('TLS below 1.2 is refused', async (t) => {
  const hub = await startTestHub(t)
  const failed = new Promise<void>((resolve, reject) => {
    const options: tls.ConnectionOptions = {
      port: hub.mqttPort,
      host: '127.0.0.1',
      rejectUnauthorized: false,
      minVersion: 'TLSv1',
      maxVersion: 'TLSv1.1',
      ciphers: 'DEFAULT:@SECLEVEL=0',
    }
    const socket = tls.connect(options, () => resolve())
    socket.once('error', reject)
  })
  await t.rejects(failed)
})
