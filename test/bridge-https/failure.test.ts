import { join } from 'node:path'
import pino from 'pino'
import t from 'tap'
import { keep } from '../../bridge-https/kept.ts'
import { createLegacyNames } from '../../bridge-https/legacy-names.ts'
import { createLifecycle } from '../../bridge-https/lifecycle/lifecycle.ts'
import { createTraffic } from '../../bridge-https/lifecycle/traffic.ts'
import { listenHttps } from '../../bridge-https/listener.ts'
import { eventRoutes } from '../../bridge-https/routes/event-routes.ts'
import { pubsubRoutes } from '../../bridge-https/routes/pubsub-routes.ts'
import type { Route } from '../../bridge-https/routes/route.ts'
import { createTokens } from '../../bridge-https/users/tokens.ts'
import { createUsers } from '../../bridge-https/users/users.ts'
import { createCertificates } from '../../certs/certificates.ts'
import { ensureDevelopmentCertificates } from '../../certs/development.ts'
import { createSigningKeys } from '../../certs/signing-keys.ts'
import { createPushSubscriptions } from '../../delivery/webhook/subscriptions.ts'
import { createConnectionBounds } from '../../listener/connection-bounds.ts'
import { openEmbeddedStore } from '../../store/embedded.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { temporaryDirectory } from '../start-hub.ts'
import { lastingTicketKey } from '../ticket-keys.ts'
import { openClient } from './api.ts'
import { exchange } from './raw.ts'
import { quickPasswords } from './users/quick-passwords.ts'

t.test('what goes wrong inside is a 500 that says little, and is finished before the end', async (t) => {
  const home = await temporaryDirectory(t)
  const clock = Date.now
  const lines: Record<string, unknown>[] = []
  const log = pino({ level: 'debug' }, { write: (line: string) => lines.push(JSON.parse(line)) })
  const store = await openEmbeddedStore(join(home, 'store'))
  const traffic = await createTraffic({ store, clock, onStoreFailure: () => t.fail('not stored') })
  const lifecycle = await createLifecycle({ store, traffic, clock, stage: 'test' })
  const users = await createUsers({
    store,
    passwords: quickPasswords(),
    clock,
    knownInstitution: () => true,
  })
  const keys = await createSigningKeys({ store, clock, keepMs: 1000, leadMs: 0 })
  const tokens = createTokens({
    keys,
    users,
    clock,
    issuer: () => 'https://hub.example',
    serviceAccount: 'a@b',
  })
  const tls = await ensureDevelopmentCertificates(join(home, 'certs'), [])
  const certificates = createCertificates({ certPath: tls.cert, keyPath: tls.key, log })
  const added = await users.add({ email: 'a@b.example', institution: 'urn:org:institution:1' })
  if ('error' in added) throw new Error(added.error)
  const user = await users.setPassword(added.token, 'correct horse')
  const { token } = user ? await tokens.issue(user) : { token: '' }

  let proceed = () => {}
  const held = new Promise<void>((resolve) => {
    proceed = resolve
  })
  let reached = () => {}
  const arrived = new Promise<void>((resolve) => {
    reached = resolve
  })
  const subscriptions = await createPushSubscriptions({ store, serviceAccount: 'a@b', clock })
  const worked: unknown[] = []
  const base = { method: 'GET', tag: 'Test', summary: '', answers: {} } as const
  const routes: Route[] = [
    ...eventRoutes({
      names: createLegacyNames({ stage: 'test', project: 'hub' }),
      pipeline: { publishLegacy: async () => ({ outcome: 'failed' }) },
      rate: { take: () => 0, charge: () => undefined },
    }),
    ...pubsubRoutes({
      subscriptions,
      tokens,
      publicUrl: () => 'https://hub.example',
      deliveries: {
        deadLetters: () => [],
        replay: async () => 2,
        replaySince: async () => 0,
        work: async (messageId, item) =>
          item.action === 'plugins.dts.event' && worked.push({ messageId, item }) > 0,
      },
    }),
    {
      ...base,
      path: '/broken',
      id: 'broken',
      handle() {
        throw new Error('secret detail')
      },
    },
    {
      ...base,
      path: '/held',
      id: 'held',
      async handle() {
        reached()
        await held
        return { status: 200, body: { done: true } }
      },
    },
  ]
  const listener = await listenHttps({
    certificates,
    tickets: lastingTicketKey(),
    routes,
    lifecycle,
    tokens,
    log,
    host: '127.0.0.1',
    port: 0,
    bounds: createConnectionBounds({ maxConnections: 10, maxConnectionsPerAddress: 0 }),
    mqttBounds: createConnectionBounds({ maxConnections: 10, maxConnectionsPerAddress: 0 }),
    proxyProtocol: false,
    proxyFrom: [],
    trustedProxies: [],
    strictTransport: true,
    openapi: () => keep({}),
    accept: () => t.fail('no websocket'),
    maxPacket: 1024,
    maxConnectPacket: 1024,
    // Long enough to receive the largest body on a busy machine.
    limits: { headersMs: 4000, requestMs: 6000, checkMs: 50 },
    metrics: createMetrics(),
  })
  t.teardown(async () => {
    await listener.close()
    certificates.close()
    await traffic.close()
    await store.close()
  })
  const hub = { httpsPort: listener.port, caPath: tls.ca ?? '' }
  const send = openClient(t, hub)

  const broken = await send('GET', '/broken')
  t.equal(broken.status, 500)
  t.same(broken.json, { message: 'Internal server error', trace: null })
  t.equal(broken.headers['strict-transport-security'], 'max-age=31536000', 'without sub-domains')
  t.match(
    lines.find(({ msg }) => msg === 'request failed'),
    { err: { message: 'secret detail' }, reqId: broken.headers['x-request-id'] },
  )
  const event = await send('POST', '/events/de.org.hub.v1.radio.track.playing', { token, body: {} })
  t.equal(event.status, 500)
  t.same(event.json, { message: 'Internal server error', trace: null })

  const own = await tokens.issueService('https://hub.example/pubsub')
  const item = { action: 'plugins.dts.event', event: {}, plugin: {}, institutionId: 'urn:org:institution:1' }
  const pushed = (work: object) => ({
    message: { data: Buffer.from(JSON.stringify(work)).toString('base64'), messageId: '1' },
    subscription: 'plugin',
  })
  const message = pushed(item)
  const done = await send('POST', '/pubsub', { token: own, body: message })
  t.equal(done.status, 201)
  t.same(done.json, { trace: null })
  t.same(worked, [{ messageId: '1', item }], 'work of the hub itself is handed on')
  const other = pushed({ ...item, action: 'plugins.other.event' })
  const unknown = await send('POST', '/pubsub', { token: own, body: other })
  t.equal(unknown.status, 404)
  t.same(unknown.json, { message: 'Plugin target not found', trace: null })
  const wrong = await send('POST', '/pubsub', { token: own, body: pushed({ ...item, event: 1 }) })
  t.equal(wrong.status, 400)
  t.match(wrong.json.errors, [{ path: '.body.message.data.event', errorCode: 'type.openapi.validation' }])
  // The largest event is little more than one `plugins` entry. The message has this entry twice: in `event` and as
  // `plugin`.
  const plugin = { type: 'dts', note: 'x'.repeat(409_000) }
  const largest = pushed({ ...item, event: { plugins: [plugin] }, plugin })
  t.equal((await send('POST', '/pubsub', { token: own, body: largest })).status, 201)
  const larger = pushed({ ...item, event: { plugins: [plugin, plugin] }, plugin })
  t.equal((await send('POST', '/pubsub', { token: own, body: larger })).status, 413)
  const elsewhere = await tokens.issueService('https://hooks.example/pubsub')
  t.equal((await send('POST', '/pubsub', { token: elsewhere, body: message })).status, 403)

  const late = /^HTTP\/1\.1 408 .*\r\n\r\n\{"message":"The request took too long","trace":null\}$/s
  const head = `POST /pubsub HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${own}\r\ncontent-type: application/json\r\n`
  const [headers, body, chunked] = await Promise.all([
    exchange(t, hub, 'GET / HTTP/1.1\r\nhost: x\r\n'),
    exchange(t, hub, `${head}content-length: 100\r\n\r\n{`),
    exchange(t, hub, `${head}transfer-encoding: chunked\r\n\r\n1\r\n{\r\n`),
  ])
  t.match(headers, late)
  t.match(body, late)
  t.match(chunked, late)
  const timedOut = lines.filter(({ status }) => status === 408)
  t.same(
    timedOut.map(({ reason, remoteAddress }) => [reason, remoteAddress]),
    new Array(3).fill(['ERR_HTTP_REQUEST_TIMEOUT', '127.0.0.1']),
  )
  const unread = await exchange(t, hub, 'GET /nothing HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{')
  t.match(unread, /^HTTP\/1\.1 404 /, 'nor does a body keep the connection open that nobody waits for')

  const slow = send('GET', '/held')
  await arrived
  const stopped = listener.stop()
  await t.rejects(send('GET', '/broken', { headers: { connection: 'close' } }), { code: 'ECONNREFUSED' })
  proceed()
  t.same((await slow).json, { done: true }, 'what was asked before is answered')
  await stopped
  await listener.close()
})
