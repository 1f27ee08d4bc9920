import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Route } from '../../../bridge-https/routes/route.ts'
import { institutions } from '../../events.ts'
import { rawClient } from '../../raw-client.ts'
import { type Issued, startTestHub, type TestHub } from '../../start-hub.ts'
import { onEachStore } from '../../stores.ts'
import { openApi, openClient, password as passwordOfUsers } from '../api.ts'
import { startRoutes } from '../start-routes.ts'

const [own = ''] = institutions

const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` })
const shown = ({ username, password }: Issued) => basic(`${username}:${password}`)

onEachStore('a reader reads until it is revoked, and only where readers may', async (t, store) => {
  const hub = await startTestHub(t, { ...store, HUB_PUBLIC_PAGE: 'false' })
  const api = await openApi(t, hub)
  const reader = await hub.reader('radio/#')
  t.match(reader.username, /^read-test-\d{14}$/)
  const ask = (headers: Record<string, string>) => api.call('GET', '/livestreams', { headers })
  t.match(await ask(shown(reader)), { status: 200, json: { livestreams: [{ id: String }] } })
  const { authorization } = shown(reader)
  t.equal((await ask({ authorization: authorization.replace('Basic', 'bAsIc') })).status, 200)

  const { username, password } = reader
  const [publisher, subscriber] = [await hub.publisher([own]), await hub.subscriber('radio/#')]
  for (const wrong of [
    basic(`${username}:`),
    basic(`${username}:${password}x`),
    basic(`${username}x:${password}`),
    basic(`${username}${password}`),
    basic(`:${password}`),
    basic(`${username}\u0000:${password}`),
    basic(''),
    { authorization: 'Basic' },
    { authorization: `Basic !!! ${password}` },
    { authorization: `Basic ${'A'.repeat(12_000)}` },
    shown(publisher),
    shown(subscriber),
  ]) {
    const { status, headers, json } = await ask(wrong)
    t.equal(status, 403, wrong.authorization)
    t.match(json.errors, [{ path: '.headers.authorization', errorCode: 'reader.wrong' }])
    t.equal(headers['www-authenticate'], undefined)
  }
  const nobody = await ask({})
  t.match(nobody, { status: 401, headers: { 'www-authenticate': /^Bearer realm="[^"]*"$/ } })
  for (const [method, path] of [
    ['GET', '/topics'],
    ['GET', '/subscriptions'],
    ['POST', '/auth/mqtt'],
    ['GET', '/operate/credentials.list'],
  ] as const) {
    const { status } = await api.raw(method, path, { headers: shown(reader) })
    t.ok(status === 401 || status === 404, `${method} ${path}: ${status}`)
  }

  const used = await hub.ask<{ lastUsedAt: string }>('credentials.show', { username })
  t.match(used, { role: 'reader', lastUsedAt: /^20/, sessions: 0 })
  const rotated = await hub.ask<Issued>('credentials.rotate', { username })
  t.match(rotated.username, /^read-test-/)
  t.equal((await ask(shown(rotated))).status, 200)
  await hub.ask('credentials.revoke', { username })
  t.equal((await ask(shown(reader))).status, 403)
  t.equal((await ask(shown(rotated))).status, 200)
})

t.test('a reader sees the names of the livestreams that its filters can match', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLIC_PAGE: 'false' })
  const api = await openApi(t, hub)
  const list = async (...filters: string[]) => {
    const reader = await hub.reader(...filters)
    const { status, json, headers } = await api.call('GET', '/livestreams', { headers: shown(reader) })
    t.equal(status, 200)
    const known = { ...shown(reader), 'if-none-match': String(headers.etag) }
    t.equal((await api.call('GET', '/livestreams', { headers: known })).status, 304)
    return json as { institutions: object[]; livestreams: { id: string; institutionId: string }[] }
  }
  const all = await list('radio/#')
  const [first, second] = all.livestreams
  for (const filter of ['radio/+/track/playing', 'radio/+/#']) t.strictSame(await list(filter), all)
  if (!first || !second) throw new Error('the sample feed has several livestreams')
  const own = new Set([second.institutionId, first.institutionId])
  const filters = [`radio/${second.id}/#`, `radio/${first.id}/control`, `radio/${first.id}/#`]
  t.match(await list(...filters), { institutions: { length: own.size }, livestreams: { length: 2 } })
  t.strictSame((await list(...filters)).livestreams, [second, first])
  t.strictSame(await list(`radio/${first.id}/#`, 'radio/+/control'), all)
  for (const filter of ['radio', 'radio/urn:org:permanent-livestream:0/#'])
    t.strictSame(await list(filter), { institutions: [], livestreams: [], trace: null }, filter)
})

t.test('on a node with a public page a wrong reader is refused, and no stranger', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLIC_PAGE: 'true' })
  const api = await openApi(t, hub)
  const ask = (headers: Record<string, string>) => api.call('GET', '/livestreams', { headers })
  t.equal((await ask({})).status, 200)
  t.equal((await ask(basic('read-x:y'))).status, 403)
  t.equal((await ask(shown(await hub.reader('radio/#')))).status, 200)
})

t.test('over MQTT a reader is nobody', async (t) => {
  const hub = await startTestHub(t, { HUB_LOGIN_FAILURES: '4' })
  const reader = await hub.reader('radio/#')
  for (const login of [reader, { ...reader, password: 'wrong' }, { ...reader, username: 'read-nobody-1' }])
    t.equal(await logIn(hub, login), 4)
  const reasons = hub.lines.filter(({ msg }) => msg === 'log-in refused').map(({ reason }) => reason)
  t.strictSame(reasons, ['reader', 'credentials'])
  t.equal(await logIn(hub, reader), 4)
  t.equal(await logIn(hub, reader), 3, 'each of them counts')
})

t.test('failed log-ins count together over MQTT and of readers', async (t) => {
  const home = t.testdir({ 'hub.json': JSON.stringify({ trustedProxies: ['127.0.1.1'] }) })
  const hub = await startTestHub(t, {
    HUB_CONFIG: join(home, 'hub.json'),
    HUB_LOGIN_FAILURES: '4',
    HUB_PUBLIC_PAGE: 'false',
  })
  const api = await openApi(t, hub)
  const [reader, subscriber] = [await hub.reader('radio/#'), await hub.subscriber('radio/#')]
  const ask = (headers: Record<string, string>, how = {}) =>
    api.call('GET', '/livestreams', { headers, ...how })
  for (let nth = 0; nth < 2; nth++) t.equal(await logIn(hub, { ...subscriber, password: 'wrong' }), 4)
  for (let nth = 0; nth < 2; nth++) t.equal((await ask(basic('x:y'), { from: '127.0.0.1' })).status, 403)
  const refused = await ask(shown(reader), { from: '127.0.0.1' })
  t.match(refused, { status: 429, headers: { 'retry-after': /^[1-9]\d?$/ } }, 'also with the right password')
  t.equal(await logIn(hub, subscriber), 3)

  const behind = (address: string) => ({ from: '127.0.1.1', headers: { 'x-forwarded-for': address } })
  const askBehind = async (address: string, headers: Record<string, string>) => {
    const { from, headers: added } = behind(address)
    return (await ask({ ...headers, ...added }, { from })).status
  }
  t.equal(await askBehind('192.0.2.7', shown(reader)), 200, 'another address')
  for (let nth = 0; nth < 4; nth++) t.equal(await askBehind('192.0.2.8', basic('x:y')), 403)
  t.equal(await askBehind('192.0.2.8', shown(reader)), 429)
  t.equal(await askBehind('192.0.2.7', shown(reader)), 200)
})

t.test('a route learns who asks, what they may read, and until when', async (t) => {
  let isThere: (() => Promise<boolean>) | undefined
  const route = { method: 'GET', summary: '', tag: '', answers: { 200: '' } } as const
  const routes: Route[] = [
    {
      ...route,
      path: '/read',
      id: 'read',
      permission: 'subscribe',
      readers: true,
      handle({ filters, holder, expiresAt, isStillUser }, user) {
        isThere = isStillUser
        return { status: 200, body: { filters, holder, expiresAt, user } }
      },
    },
    {
      ...route,
      path: '/open',
      id: 'open',
      handle: ({ filters, holder, expiresAt }) => ({ status: 200, body: { filters, holder, expiresAt } }),
    },
  ]
  const { users, tokens, credentials, ...door } = await startRoutes(t, { routes })
  const send = openClient(t, door)

  t.strictSame((await send('GET', '/open')).json, { filters: ['radio/#'] })

  const filters = ['radio/x/track/+', 'radio/y/#']
  const made = await credentials.add({ role: 'reader', label: 'test', filters })
  if ('error' in made) throw new Error(made.error)
  const { username } = made.credential
  const ofReader = await send('GET', '/read', { headers: shown({ username, password: made.password }) })
  t.match(ofReader.json, {
    filters,
    holder: username,
    user: { institutionId: '', permissions: ['subscribe'] },
  })
  t.notOk('expiresAt' in ofReader.json)
  t.equal(await isThere?.(), true)
  await credentials.revoke(username)
  t.equal(await isThere?.(), false)

  const added = await users.add({ email: 'a@b.example', institution: own })
  if ('error' in added) throw new Error(added.error)
  const user = await users.setPassword(added.token, passwordOfUsers)
  if (!user) throw new Error('no user')
  const { token, expires } = await tokens.issue(user)
  const ofUser = await send('GET', '/read', { token })
  t.match(ofUser.json, {
    filters: ['radio/#'],
    holder: user.userId,
    expiresAt: Date.parse(expires),
    user: { email: 'a@b.example' },
  })
  t.equal(await isThere?.(), true)
  await users.remove('a@b.example')
  t.equal(await isThere?.(), false)
})

/** The return code of an MQTT log-in. */
async function logIn(hub: TestHub, { username, password }: Issued): Promise<number | undefined> {
  const client = await rawClient(t, hub.mqttPort, readFileSync(hub.caPath))
  const answer = await client.connect({ clientId: 'x', username, password: Buffer.from(password) })
  return answer.returnCode
}
