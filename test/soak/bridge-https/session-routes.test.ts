import { connectAsync } from 'mqtt'
import t, { type Test } from 'tap'
import { createStrangers } from '../../../bridge-https/users/strangers.ts'
import { type Answer, addUser, openApi, password } from '../../bridge-https/api.ts'
import { connect } from '../../clients.ts'
import { institutions, station } from '../../events.ts'
import { startTestHub, type TestHub } from '../../start-hub.ts'

const [own = ''] = institutions
const page = { 'x-hub-page': '1' }

t.test('a page logs in, renews its token by the cookie, and logs out', async (t) => {
  const { hub, api } = await start(t)
  const { email } = await addUser(hub, api, own, { permissions: ['subscribe'] })
  const begun = await api.call('POST', '/auth/session', { body: { email, password }, headers: page })
  t.equal(begun.status, 200)
  t.match(begun.json, { user: { email, permissions: ['subscribe'] }, expiresIn: 3600 })
  t.notOk('refreshToken' in begun.json, 'what lasts is in the cookie alone')
  t.equal(begun.headers['cache-control'], 'no-store')
  const [cookie, ...attributes] = cookieOf(begun)
  t.match(cookie, /^__Host-Http-hub-session=ey/)
  t.strictSame(attributes.slice().sort(), [
    'HttpOnly',
    'Max-Age=2592000',
    'Path=/',
    'SameSite=Strict',
    'Secure',
  ])

  const renewed = await api.call('PUT', '/auth/session', { headers: { ...page, cookie: `a=b; ${cookie}` } })
  t.equal(renewed.status, 200)
  t.equal((await api.call('GET', '/topics', { token: String(renewed.json.token) })).status, 200)
  const ended = await api.call('DELETE', '/auth/session', { headers: page })
  t.match(cookieOf(ended), ['__Host-Http-hub-session=', /./, 'Max-Age=0'])
})

t.test('who logs out ends everything that the log-in gave, and no other log-in', async (t) => {
  const { hub, api } = await start(t)
  const { email, token, refreshToken } = await addUser(hub, api, own, { permissions: ['subscribe'] })
  const logIn = () => api.call('POST', '/auth/session', { body: { email, password }, headers: page })
  const begun = await logIn()
  const [copy = ''] = cookieOf(begun)
  const [cookie = ''] = cookieOf(await renewWith(copy))
  const first = String(begun.json.token)
  const held = login(await api.call('POST', '/auth/mqtt', { token: first }))
  const { client } = await connect(t, hub, held, { clientId: 'page-1' })
  const closed = new Promise((resolve) => client.once('close', () => resolve(true)))
  const other = login(await api.call('POST', '/auth/mqtt', { token }))

  const ended = await api.call('DELETE', '/auth/session', { headers: { ...page, cookie } })
  t.match(cookieOf(ended), ['__Host-Http-hub-session=', /./, 'Max-Age=0'])
  t.ok(await closed, 'the page reads no more')
  t.equal(await codeOf(hub, held), 4)
  for (const shown of [copy, cookie])
    t.equal((await renewWith(shown)).status, 403, 'nor any copy of the cookie')
  t.equal((await api.call('GET', '/topics', { token: first })).status, 403)

  t.equal((await api.call('GET', '/topics', { token })).status, 200, 'another log-in goes on')
  t.equal(await codeOf(hub, { ...other, clientId: 'page-2' }), 0)
  t.equal((await api.call('POST', '/auth/refresh', { body: { refreshToken } })).status, 200)
  await hub.close()
  const again = await startTestHub(t, {}, hub.home)
  const later = await openApi(t, again)
  const renewed = await later.call('PUT', '/auth/session', { headers: { ...page, cookie } })
  t.equal(renewed.status, 403, 'also after a restart')

  function renewWith(shown: string): Promise<Answer> {
    return api.call('PUT', '/auth/session', { headers: { ...page, cookie: shown } })
  }
})

t.test('who logs in again in a browser ends the log-in that its cookie held', async (t) => {
  const { hub, api } = await start(t)
  const { email } = await addUser(hub, api, own, { permissions: ['subscribe'] })
  const logIn = (cookie: string, secret = password) =>
    api.call('POST', '/auth/session', { body: { email, password: secret }, headers: { ...page, cookie } })
  const isCurrent = async ({ json: { token } }: Answer) =>
    (await api.call('GET', '/topics', { token: String(token) })).status === 200
  const first = await logIn('')
  const [cookie = ''] = cookieOf(first)
  await logIn(cookie, 'wrong')
  t.equal(await isCurrent(first), true, 'a log-in that fails ends none')
  const second = await logIn(cookie)
  t.equal(await isCurrent(first), false)
  t.equal((await api.call('PUT', '/auth/session', { headers: { ...page, cookie } })).status, 403)
  t.equal(await isCurrent(second), true)
})

t.test('who ends more log-ins than the hub remembers ends all of them', async (t) => {
  const { hub, api } = await start(t, { HUB_PUBLISH_RATE: '0' })
  const { email, token } = await addUser(hub, api, own, { permissions: ['subscribe'] })
  for (let nth = 0; nth <= 100; nth++) {
    const [cookie = ''] = cookieOf(
      await api.call('POST', '/auth/session', { body: { email, password }, headers: page }),
    )
    await api.call('DELETE', '/auth/session', { headers: { ...page, cookie } })
    t.equal((await api.call('PUT', '/auth/session', { headers: { ...page, cookie } })).status, 403)
  }
  t.equal((await api.call('GET', '/topics', { token })).status, 403)
  t.equal(
    (await api.call('POST', '/auth/session', { body: { email, password }, headers: page })).status,
    200,
    'and may log in again',
  )
})

t.test('renewing is charged like publishing', async (t) => {
  const { hub, api } = await start(t, { HUB_PUBLISH_RATE: '1' })
  const { refreshToken } = await addUser(hub, api, own)
  const headers = { ...page, cookie: `__Host-Http-hub-session=${refreshToken}` }
  const asked = Array.from({ length: 60 }, () => api.call('PUT', '/auth/session', { headers }))
  const refused = (await Promise.all(asked)).filter(({ status }) => status === 429)
  t.ok(refused.length > 0)
  t.match(refused[0]?.headers['retry-after'], /^\d+$/)
})

t.test('a wrong password, and a cookie that is none, log nobody in', async (t) => {
  const { hub, api } = await start(t)
  const { email, token, refreshToken } = await addUser(hub, api, own)
  const wrong = await api.call('POST', '/auth/session', { body: { email, password: 'wrong' }, headers: page })
  t.match(wrong, { status: 401, json: { errors: [{ errorCode: 'login.wrong' }] } })
  t.equal(wrong.headers['set-cookie'], undefined)
  const renew = (cookie: string) => api.call('PUT', '/auth/session', { headers: { ...page, cookie } })
  for (const cookie of [
    '',
    '__Host-Http-hub-session=',
    '__Host-Http-hub-session=x',
    `__Host-Http-hub-session=${token}`,
  ]) {
    const refused = await renew(cookie)
    t.match(refused, { status: 403, json: { errors: [{ errorCode: 'session.invalid' }] } }, cookie)
    t.match(cookieOf(refused)[2], 'Max-Age=0')
  }
  t.equal((await renew(`__Host-Http-hub-session=${refreshToken}`)).status, 200)
  await hub.ask('users.remove', { email })
  t.equal((await renew(`__Host-Http-hub-session=${refreshToken}`)).status, 403, 'the user is gone')
})

t.test('only pages of the hub may ask', async (t) => {
  const { hub, api } = await start(t)
  const { email, refreshToken } = await addUser(hub, api, own)
  const cookie = `__Host-Http-hub-session=${refreshToken}`
  for (const headers of [
    {},
    { origin: `https://localhost:${hub.httpsPort}` },
    { ...page, origin: 'https://evil.example' },
    { ...page, origin: `http://localhost:${hub.httpsPort}` },
    { ...page, origin: 'https://localhost' },
    { ...page, origin: 'null' },
  ]) {
    for (const [method, sent] of [
      ['POST', { body: { email, password } }],
      ['PUT', {}],
      ['DELETE', {}],
    ] as const) {
      const answer = await api.call(method, '/auth/session', { ...sent, headers: { ...headers, cookie } })
      const shown = `${method} ${JSON.stringify(headers)}`
      t.match(answer, { status: 403, json: { errors: [{ errorCode: 'session.foreign' }] } }, shown)
      t.equal(answer.headers['set-cookie'], undefined)
    }
  }
  const origin = `https://localhost:${hub.httpsPort}`
  t.equal((await api.call('PUT', '/auth/session', { headers: { ...page, origin, cookie } })).status, 200)
})

t.test('pages may come from the public URL, whatever Host a proxy sends', async (t) => {
  // The URL has a path and the default port: an Origin has neither (RFC 6454 §6.1).
  const { hub, api } = await start(t, { HUB_PUBLIC_URL: 'https://Hub.example:443/' })
  const { refreshToken } = await addUser(hub, api, own)
  const cookie = `__Host-Http-hub-session=${refreshToken}`
  const renew = async (host: string, origin: string) =>
    (await api.call('PUT', '/auth/session', { headers: { ...page, host, origin, cookie } })).status
  for (const host of ['127.0.0.1:8443', 'hub.example', 'hub.example:8443', 'backend', ''])
    t.equal(await renew(host, 'https://hub.example'), 200, host)
  t.equal(await renew('other.example:444', 'https://other.example:444'), 200, 'another name of the hub')
  for (const origin of [
    'http://hub.example',
    'https://hub.example:8443',
    'https://hub.example.evil.example',
    'https://evil.example',
    'null',
    'https://',
    '',
  ])
    t.equal(await renew('127.0.0.1:8443', origin), 403, origin)
  t.equal(await renew('', 'https://'), 403, 'a request without a host has no page')
})

t.test('a user gets a credential of an hour, for what the body names', async (t) => {
  const { hub, api } = await start(t)
  const { token, email } = await addUser(hub, api, own, { permissions: ['subscribe'] })
  const before = Date.now()
  const { status, json, headers } = await api.call('POST', '/auth/mqtt', { token })
  t.equal(status, 200)
  t.match(json, { url: `wss://localhost:${hub.httpsPort}/mqtt`, filters: ['radio/#'] })
  t.equal(headers['cache-control'], 'no-store')
  t.ok(Math.abs(Date.parse(String(json.expiresAt)) - before - 3_600_000) < 60_000)
  const filter = `radio/${station().id}/#`
  const narrow = await api.call('POST', '/auth/mqtt', { token, body: { filters: [filter] } })
  const { client } = await connect(t, hub, login(narrow), { clientId: 'page-1' })
  t.match(await client.subscribeAsync(filter, { qos: 1 }), [{ qos: 1 }])
  await t.rejects(client.subscribeAsync('radio/#', { qos: 1 }))
  const listed = await hub.ask<{ user: string; filters: string[] }[]>('credentials.list')
  t.strictSame(listed.map(({ user, filters }) => `${user} ${filters}`).sort(), [
    `${email} radio/#`,
    `${email} ${filter}`,
  ])
})

t.test('filters outside of the radio tree, and unknown fields, are refused', async (t) => {
  const { hub, api } = await start(t)
  const { token } = await addUser(hub, api, own, { permissions: ['subscribe'] })
  for (const [body, path] of [
    [{ filters: ['#'] }, '.body.filters'],
    [{ filters: ['inbox/#'] }, '.body.filters'],
    [{ filters: ['radio/a', 'feedback/x'] }, '.body.filters'],
    [{ filters: [] }, '.body.filters'],
    [{ filters: 'radio/#' }, '.body.filters'],
    [{ filters: Array.from({ length: 21 }, (_, index) => `radio/${index}`) }, '.body.filters'],
    [{ filters: [`radio/${'x'.repeat(500)}`] }, '.body.filters.0'],
    [{ filter: ['radio/#'] }, '.body.filter'],
  ] as const) {
    const answer = await api.call('POST', '/auth/mqtt', { token, body })
    t.match(answer, { status: 400, json: { errors: [{ path }] } }, JSON.stringify(body).slice(0, 60))
  }
  t.strictSame(await hub.ask('credentials.list'), [], 'and nothing was made')
})

t.test('who may not subscribe gets none', async (t) => {
  const { hub, api } = await start(t, { HUB_PUBLIC_PAGE: 'false' })
  const { token } = await addUser(hub, api, own, { permissions: ['publish', 'operate'] })
  for (const [method, path] of [
    ['POST', '/auth/mqtt'],
    ['GET', '/livestreams'],
  ] as const) {
    t.equal((await api.call(method, path)).status, 401, `${path} for a stranger`)
    t.equal((await api.call(method, path, { token })).status, 403, `${path} without subscribe`)
    t.equal((await api.call(method, path, { token: 'x' })).status, 403, `${path} with a token that is none`)
  }
})

t.test('with a public page strangers read, and cannot do anything else', async (t) => {
  const { hub, api } = await start(t, { HUB_PUBLIC_PAGE: 'true' })
  const answers = await Promise.all([1, 2, 3].map(() => api.call('POST', '/auth/mqtt')))
  t.equal(new Set(answers.map(({ json }) => json.username)).size, 1, 'all of them with one credential')
  t.strictSame(answers[0]?.json.filters, ['radio/#'])
  const narrow = await api.call('POST', '/auth/mqtt', { body: { filters: ['radio/+/control'] } })
  t.match(narrow, { status: 400, json: { errors: [{ path: '.body.filters', message: /radio\/#/ }] } })
  t.equal((await api.call('GET', '/livestreams')).status, 200)
  t.equal((await api.call('POST', '/auth/mqtt', { token: 'x' })).status, 403, 'a bad token is no stranger')
  t.equal((await api.call('GET', `/livestreams/${station().id}/events`)).status, 401)
  t.match(await hub.ask('credentials.list'), [{ user: 'stranger' }])
})

t.test('strangers of one address ask so many times a minute', async (t) => {
  const strangers = createStrangers({ most: 2 })
  for (const address of ['192.0.2.1', '192.0.2.1', '192.0.2.2'])
    t.ok('user' in (await strangers.admit(address)))
  t.match(await strangers.admit('192.0.2.1'), { retryAfter: /\d+/ })
  t.ok('user' in (await strangers.admit('192.0.2.2')))
})

t.test('a page has no persistent session, and takes over nobody', async (t) => {
  const { hub, api } = await start(t, { HUB_PUBLIC_PAGE: 'true' })
  const stranger = login(await api.call('POST', '/auth/mqtt'))
  const clientId = 'car-radio'
  const car = await connect(t, hub, await hub.subscriber('radio/#'), { clientId, clean: false })
  t.equal(await codeOf(hub, { ...stranger, clientId: 'page-mine', clean: false }), 5)
  t.equal(await codeOf(hub, { ...stranger, clientId, clean: true }), 2)
  t.ok(car.client.connected)
})

t.test('a page keeps nobody out: its client id begins with page-, or the hub makes one', async (t) => {
  const { hub, api } = await start(t, { HUB_PUBLIC_PAGE: 'true' })
  const { token } = await addUser(hub, api, own, { permissions: ['subscribe'] })
  for (const held of [
    login(await api.call('POST', '/auth/mqtt')),
    login(await api.call('POST', '/auth/mqtt', { token })),
  ]) {
    for (const clientId of ['studio', 'page', 'Page-1', 'xpage-1', 'aedes_1'])
      t.equal(await codeOf(hub, { ...held, clientId, clean: true }), 2, clientId)
    for (const clientId of ['', 'page-', 'page-1'])
      t.equal(await codeOf(hub, { ...held, clientId, clean: true }), 0, clientId)
  }
  const { client } = await connect(t, hub, await hub.subscriber('radio/#'), { clientId: 'page-of-a-car' })
  t.ok(client.connected, 'others may have such names, too')
})

t.test('a page has so many filters at once', async (t) => {
  const { hub, api } = await start(t, { HUB_PUBLIC_PAGE: 'true' })
  const { client } = await connect(t, hub, login(await api.call('POST', '/auth/mqtt')), {
    clientId: 'page-1',
  })
  const filters = Array.from({ length: 22 }, (_, index) => `radio/${index}/track/playing`)
  const granted = await client.subscribeAsync(filters, { qos: 1 }).catch(() => undefined)
  t.equal(granted, undefined, 'one of them was refused')
  await client.unsubscribeAsync('radio/0/track/playing')
  t.match(await client.subscribeAsync('radio/21/track/playing', { qos: 1 }), [{ qos: 1 }])
  await t.rejects(client.subscribeAsync('radio/20/track/playing', { qos: 1 }))
})

t.test('what a page holds ends with its user, a new password, and when it is revoked', async (t) => {
  const { hub, api } = await start(t)
  for (const end of ['removed', 'new password', 'revoked'] as const) {
    const { token, email } = await addUser(hub, api, own, { permissions: ['subscribe'] })
    const held = login(await api.call('POST', '/auth/mqtt', { token }))
    const { client } = await connect(t, hub, held, { clientId: 'page-1' })
    const closed = new Promise((resolve) => client.once('close', () => resolve(true)))
    if (end === 'removed') await hub.ask('users.remove', { email })
    if (end === 'revoked') await hub.ask('credentials.revoke', { username: held.username })
    if (end === 'new password') {
      const { resetToken } = await hub.ask<{ resetToken: string }>('users.reset-password', { email })
      await api.call('POST', '/auth/reset', { body: { token: resetToken, password: 'quite another one' } })
    }
    t.ok(await closed, end)
    t.equal(await codeOf(hub, held), 4)
  }
  t.strictSame(await hub.ask('credentials.list'), [])
})

t.test('who was removed while the hub made credentials for it holds none', async (t) => {
  const { hub, api } = await start(t)
  const { token, email } = await addUser(hub, api, own, { permissions: ['subscribe'] })
  const asked = Array.from({ length: 40 }, () => api.call('POST', '/auth/mqtt', { token }))
  await Promise.race(asked)
  await hub.ask('users.remove', { email })
  const answers = await Promise.all(asked)
  for (const { status } of answers) t.ok(status === 200 || status === 403, `answered ${status}`)
  for (const given of answers.filter(({ status }) => status === 200))
    t.equal(await codeOf(hub, login(given)), 4)
  await hub.until(async () => (await hub.ask<unknown[]>('credentials.list')).length === 0)
})

t.test('a page that is not public any more ends what strangers hold', async (t) => {
  const { hub, api } = await start(t, { HUB_PUBLIC_PAGE: 'true' })
  const held = login(await api.call('POST', '/auth/mqtt'))
  t.equal(await codeOf(hub, { ...held, clientId: 'page-1' }), 0)
  await hub.close()
  const again = await startTestHub(t, { HUB_PUBLIC_PAGE: 'false' }, hub.home)
  t.equal(await codeOf(again, held), 4)
  await again.until(async () => (await again.ask<unknown[]>('credentials.list')).length === 0)
})

t.test('asking for credentials is charged like publishing', async (t) => {
  const { hub, api } = await start(t, { HUB_PUBLISH_RATE: '1' })
  const { token } = await addUser(hub, api, own, { permissions: ['subscribe'] })
  const asked = Array.from({ length: 60 }, () => api.call('POST', '/auth/mqtt', { token }))
  const refused = (await Promise.all(asked)).filter(({ status }) => status === 429)
  t.ok(refused.length > 0)
  t.match(refused[0]?.headers['retry-after'], /^\d+$/)
})

t.test('the list of livestreams has titles and institutions', async (t) => {
  const { hub, api } = await start(t)
  const { token } = await addUser(hub, api, own, { permissions: ['subscribe'] })
  const { json } = await api.call('GET', '/livestreams', { token })
  const { id, title, institution } = station()
  t.match(json, { livestreams: [{ id, title, institutionId: institution.id }], institutions: [institution] })
})

async function start(t: Test, env: Record<string, string> = {}) {
  const hub = await startTestHub(t, env)
  return { hub, api: await openApi(t, hub) }
}

function cookieOf({ headers }: Answer): string[] {
  return String(headers['set-cookie'] ?? '').split('; ')
}

function login({ json }: Answer) {
  return { username: String(json.username), password: String(json.password) }
}

/** The CONNACK return code of an MQTT log-in. 0: the node accepts the log-in. */
async function codeOf(hub: TestHub, options: object): Promise<unknown> {
  const settings = { ...options, protocolVersion: 4 as const, reconnectPeriod: 0, rejectUnauthorized: false }
  return connectAsync(`mqtts://localhost:${hub.mqttPort}`, settings, false).then(
    (client) => client.endAsync().then(() => 0),
    (error: { code?: unknown }) => error.code,
  )
}
