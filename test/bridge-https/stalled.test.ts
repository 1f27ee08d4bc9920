import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:tls'
import pino from 'pino'
import t from 'tap'
import { createLifecycle } from '../../bridge-https/lifecycle/lifecycle.ts'
import { createTraffic } from '../../bridge-https/lifecycle/traffic.ts'
import { listenHttps } from '../../bridge-https/listener.ts'
import type { Route } from '../../bridge-https/routes/route.ts'
import { createTokens } from '../../bridge-https/users/tokens.ts'
import { createUsers } from '../../bridge-https/users/users.ts'
import { createCertificates } from '../../certs/certificates.ts'
import { ensureDevelopmentCertificates } from '../../certs/development.ts'
import { createSigningKeys } from '../../certs/signing-keys.ts'
import { createConnectionBounds } from '../../listener/connection-bounds.ts'
import { openEmbeddedStore } from '../../store/embedded.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { temporaryDirectory } from '../start-hub.ts'
import { openClient } from './api.ts'
import { secured } from './raw.ts'
import { quickPasswords } from './users/quick-passwords.ts'

t.test('who does not read an answer does not keep the connection', async (t) => {
  const home = await temporaryDirectory(t)
  const clock = Date.now
  const log = pino({ level: 'silent' })
  const store = await openEmbeddedStore(join(home, 'store'))
  const traffic = await createTraffic({ store, clock, onStoreFailure: () => t.fail('not stored') })
  const passwords = quickPasswords()
  const users = await createUsers({ store, passwords, clock, knownInstitution: () => true })
  const keys = await createSigningKeys({ store, clock, keepMs: 1000 })
  const tls = await ensureDevelopmentCertificates(join(home, 'certs'), [])
  const certificates = createCertificates({ certPath: tls.cert, keyPath: tls.key, log })
  const large: Route = {
    ...{ method: 'GET', path: '/large', id: 'large', tag: 'Test', summary: '', answers: {} },
    // 16 MiB: more than the buffers at both ends of the connection hold.
    handle: () => ({
      status: 200,
      body: 'x'.repeat(16 * 1024 * 1024),
      headers: { 'content-type': 'text/plain' },
    }),
  }
  const listener = await listenHttps({
    ...{ certificates, log, host: '127.0.0.1', port: 0, routes: [large] },
    lifecycle: await createLifecycle({ store, traffic, clock, stage: 'test' }),
    tokens: createTokens({ keys, users, clock, issuer: () => 'https://hub.example', serviceAccount: 'a@b' }),
    bounds: createConnectionBounds({ maxConnections: 1, maxConnectionsPerAddress: 0 }),
    mqttBounds: createConnectionBounds({ maxConnections: 1, maxConnectionsPerAddress: 0 }),
    proxyProtocol: false,
    strictTransport: false,
    openapi: () => '{}',
    accept: () => t.fail('no websocket'),
    maxPacketBytes: 1024,
    maxConnectBytes: 1024,
    limits: { stalledMs: 200 },
    metrics: createMetrics(),
  })
  t.teardown(async () => {
    await listener.stop()
    await listener.close()
    certificates.close()
    await traffic.close()
    await store.close()
  })
  const hub = { httpsPort: listener.port, caPath: tls.ca ?? '' }
  const options = { host: 'localhost', port: hub.httpsPort, ca: readFileSync(hub.caPath) }

  const stalled = await secured(connect(options))
  t.teardown(() => stalled.destroy())
  stalled.pause()
  stalled.write('GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await t.rejects(secured(connect(options)), 'it has the only place')
  let next: Awaited<ReturnType<typeof secured>> | undefined
  while (!next) next = await secured(connect(options)).catch(() => undefined)
  t.pass('the place is free again')
  next.destroy()

  const send = openClient(t, hub)
  let answer: Awaited<ReturnType<typeof send>> | undefined
  while (!answer) answer = await send('GET', '/large').catch(() => undefined)
  t.equal(answer.text.length, 16 * 1024 * 1024, 'who reads gets all of it')
})
