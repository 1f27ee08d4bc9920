import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type ConnectionOptions, connect as connectTls, TLSSocket } from 'node:tls'
import { connectAsync, type IClientOptions } from 'mqtt'
import t, { type Test } from 'tap'
import { makeClientCa } from '../../../client-certificates.ts'
import { closed } from '../../../clients.ts'
import { institutions, playing, station } from '../../../events.ts'
import { startTestHub, type TestHub, temporaryDirectory } from '../../../start-hub.ts'

/*
 * Clients log in with certificates that the CA of HUB_CLIENT_CA has signed. The common name of the subject names the
 * credential.
 */

type ClientCa = Awaited<ReturnType<typeof makeClientCa>>

const institution = institutions[0] ?? ''

t.test('a certificate logs in as the credential that it names, with its permissions', async (t) => {
  const { hub, ca } = await start(t)
  const { username } = await hub.publisher([institution])
  const own = await ca.issue(`CN=${username}`)
  for (const named of [{}, { username }, { username, password: 'anything' }]) {
    const client = await logIn(t, hub, { ...own, ...named })
    const logged = hub.lines.filter(({ msg }) => msg === 'client connected').at(-1)
    t.match(logged, { username }, 'the log has the credential, also where CONNECT names none')
    await client.subscribeAsync(`feedback/${institution}`, { qos: 1 })
    const reported = new Promise((resolve) =>
      client.once('message', (_topic, payload) => resolve(JSON.parse(payload.toString()).outcome)),
    )
    await client.publishAsync(`inbox/${institution}`, JSON.stringify(playing(station())), { qos: 1 })
    t.equal(await reported, 'published')
    await client.endAsync()
  }
  const listed = await hub.ask<{ username: string; lastUsedAt: string }[]>('credentials.list')
  t.match(listed.find((one) => one.username === username)?.lastUsedAt, String)
})

t.test('it ends with its credential', async (t) => {
  const { hub, ca } = await start(t)
  const { username } = await hub.publisher([institution])
  const own = await ca.issue(`CN=${username}`)
  const client = await logIn(t, hub, own)
  const ended = closed(client)
  await hub.ask('credentials.revoke', { username })
  await ended
  await refused(t, hub, own, { reason: 'certificate', problem: /no credential/ })
})

const strangers: [
  what: string,
  login: (ca: ClientCa, username: string) => Promise<IClientOptions>,
  problem: RegExp,
][] = [
  [
    'a certificate of another CA',
    async (_, name) => (await makeClientCa('Other')).issue(`CN=${name}`),
    /VERIFY|ISSUER|SIGNATURE/,
  ],
  ['an expired certificate', (ca, name) => ca.issue(`CN=${name}`, 1000), /EXPIRED/],
  ['a certificate that names nobody', (ca) => ca.issue('CN=nobody'), /no credential/],
  ['a certificate without a name', (ca) => ca.issue('O=somebody'), /one common name/],
  ['a certificate with two names', (ca, name) => ca.issue(`CN=${name}, CN=other`), /one common name/],
  [
    'another user name',
    async (ca, name) => ({ ...(await ca.issue(`CN=${name}`)), username: 'other' }),
    /user name/,
  ],
]

for (const [what, login, problem] of strangers) {
  t.test(`${what} lets nobody in`, async (t) => {
    const { hub, ca } = await start(t)
    const { username } = await hub.publisher([institution])
    await refused(t, hub, await login(ca, username), { reason: 'certificate', problem })
  })
}

t.test('a certificate that names a reader lets nobody in', async (t) => {
  const { hub, ca } = await start(t)
  const { username } = await hub.reader('radio/#')
  await refused(t, hub, await ca.issue(`CN=${username}`), { reason: 'certificate', problem: /no credential/ })
})

t.test('without certificate and user name nobody gets in', async (t) => {
  const { hub } = await start(t)
  await refused(t, hub, {}, { reason: 'credentials' })
})

t.test('passwords work beside certificates, also beside one that is not valid', async (t) => {
  const { hub } = await start(t)
  const { username, password } = await hub.publisher([institution])
  const other = await makeClientCa('Another CA')
  await logIn(t, hub, { username, password })
  await logIn(t, hub, { username, password, ...(await other.issue(`CN=${username}`)) })
  await refused(
    t,
    hub,
    { username, password: 'wrong', ...(await other.issue(`CN=${username}`)) },
    {
      reason: 'credentials',
    },
  )
})

for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
  t.test(`a resumed connection of ${maxVersion} has its certificate, until the CA is replaced`, async (t) => {
    const { hub, ca, caPath } = await start(t)
    const { username } = await hub.publisher([institution])
    const own = await ca.issue(`CN=${username}`)
    const session = await sessionOf(hub, { ...own, maxVersion })
    const again = await logIn(t, hub, { maxVersion, session } as IClientOptions)
    t.ok(again.stream instanceof TLSSocket && again.stream.isSessionReused())
    const anonymous = await sessionOf(hub, { maxVersion })
    await refused(t, hub, { maxVersion, session: anonymous } as IClientOptions, { reason: 'credentials' })

    await writeFile(caPath, (await makeClientCa('The next CA')).ca)
    await hub.until(async () => hub.lines.some(({ msg }) => msg === 'CA replaced'))
    await refused(t, hub, { ...own, maxVersion, session } as IClientOptions, {
      reason: 'certificate',
      problem: /VERIFY|ISSUER|SIGNATURE/,
    })
  })
}

async function start(t: Test) {
  const home = await temporaryDirectory(t)
  const caPath = join(home, 'client-ca.pem')
  const ca = await makeClientCa('The client CA')
  await writeFile(caPath, ca.ca)
  const hub = await startTestHub(t, { HUB_CLIENT_CA: caPath, HUB_LOGIN_FAILURES: '0' }, home)
  return { hub, ca, caPath }
}

async function logIn(t: Test, hub: TestHub, login: IClientOptions) {
  const client = await connectAsync(
    `mqtts://localhost:${hub.mqttPort}`,
    { ca: readFileSync(hub.caPath), reconnectPeriod: 0, ...login },
    false,
  )
  client.on('error', () => {})
  t.teardown(() => client.endAsync(true))
  return client
}

/** The CONNACK refuses with code 4, and the log says why. */
async function refused(t: Test, hub: TestHub, login: IClientOptions, line: object) {
  const before = hub.lines.length
  await t.rejects(logIn(t, hub, login), { code: 4 })
  await hub.until(async () => hub.lines.slice(before).some(({ msg }) => msg === 'log-in refused'))
  const found = hub.lines.slice(before).find(({ msg }) => msg === 'log-in refused')
  t.match(found, line)
}

/** The TLS session of a connection, whether its log-in is refused or not. */
async function sessionOf(hub: TestHub, options: ConnectionOptions): Promise<Buffer> {
  const ca = readFileSync(hub.caPath)
  const socket = connectTls({ port: hub.mqttPort, host: 'localhost', ca, ...options })
  const session = await new Promise<Buffer>((resolve) => socket.once('session', resolve))
  socket.destroy()
  return session
}
