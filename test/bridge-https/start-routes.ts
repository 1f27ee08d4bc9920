import { join } from 'node:path'
import pino from 'pino'
import type { Test } from 'tap'
import { createCredentials } from '../../acl/credentials.ts'
import { keep } from '../../bridge-https/kept.ts'
import { createLifecycle } from '../../bridge-https/lifecycle/lifecycle.ts'
import { createTraffic } from '../../bridge-https/lifecycle/traffic.ts'
import { listenHttps } from '../../bridge-https/listener.ts'
import type { Route } from '../../bridge-https/routes/route.ts'
import { createReaders } from '../../bridge-https/users/readers.ts'
import { createTokens } from '../../bridge-https/users/tokens.ts'
import { createUsers } from '../../bridge-https/users/users.ts'
import { createCertificates } from '../../certs/certificates.ts'
import { ensureDevelopmentCertificates } from '../../certs/development.ts'
import { createSigningKeys } from '../../certs/signing-keys.ts'
import { createConnectionBounds } from '../../listener/connection-bounds.ts'
import { createLoginLimit } from '../../listener/login-limit.ts'
import { openEmbeddedStore } from '../../store/embedded.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { temporaryDirectory } from '../start-hub.ts'
import { lastingTicketKey } from '../ticket-keys.ts'
import { quickPasswords } from './users/quick-passwords.ts'

/** Serves these routes over HTTPS as a node does, until the test ends. */
export async function startRoutes(
  t: Test,
  of: { routes: readonly Route[]; maxConnections?: number; stalledMs?: number },
) {
  const { routes, maxConnections = 100, stalledMs = 60_000 } = of
  const home = await temporaryDirectory(t)
  const clock = Date.now
  const log = pino({ level: 'silent' })
  const store = await openEmbeddedStore(join(home, 'store'))
  const traffic = await createTraffic({ store, clock, onStoreFailure: () => t.fail('not stored') })
  const passwords = quickPasswords()
  const users = await createUsers({ store, passwords, clock, knownInstitution: () => true })
  const keys = await createSigningKeys({ store, clock, keepMs: 1000, leadMs: 0 })
  const tokens = createTokens({
    keys,
    users,
    clock,
    issuer: () => 'https://hub.example',
    serviceAccount: 'a@b',
  })
  const credentials = await createCredentials({ store, clock, isCurrent: () => true })
  const readers = createReaders({
    credentials,
    store,
    loginLimit: createLoginLimit(0, store),
    noteUse: () => undefined,
    counted: () => undefined,
  })
  const tls = await ensureDevelopmentCertificates(join(home, 'certs'), [])
  const certificates = createCertificates({ certPath: tls.cert, keyPath: tls.key, log })
  const bounds = createConnectionBounds({ maxConnections, maxConnectionsPerAddress: 0 })
  const listener = await listenHttps({
    certificates,
    tickets: lastingTicketKey(),
    log,
    host: '127.0.0.1',
    port: 0,
    routes,
    lifecycle: await createLifecycle({ store, traffic, clock, stage: 'test' }),
    tokens,
    readers,
    store,
    bounds,
    mqttBounds: bounds,
    proxyProtocol: false,
    proxyFrom: [],
    trustedProxies: [],
    strictTransport: false,
    openapi: () => keep({}),
    accept: () => t.fail('no websocket'),
    maxPacket: 1024,
    maxConnectPacket: 1024,
    limits: { stalledMs },
    metrics: createMetrics(),
  })
  t.teardown(async () => {
    await listener.stop()
    await listener.close()
    certificates.close()
    await traffic.close()
    await store.close()
  })
  return { httpsPort: listener.port, caPath: tls.ca ?? '', users, tokens, credentials }
}
