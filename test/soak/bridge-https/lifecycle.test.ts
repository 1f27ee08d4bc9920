import t from 'tap'
import { addUser, openApi, password } from '../../bridge-https/api.ts'
import { object } from '../../bridge-https/description.ts'
import { institutions, playing, station } from '../../events.ts'
import { startTestHub } from '../../start-hub.ts'
import { onEachStore } from '../../stores.ts'

const [own = ''] = institutions
const link = 'https://hub.example/migration'
const events = '/events/de.org.hub.v1.radio.track.playing'

interface Report {
  track: string
  state: string
  requests: number
  traffic: { route: string; day: string; requests: number }[]
}

t.test('deprecated routes answer as ever, with notice', async (t) => {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  const before = await api.call('GET', '/topics', { token })
  t.notOk(before.headers.deprecation)
  const announced = Math.floor(Date.now() / 1000)
  await hub.ask('lifecycle.announce', { track: 'push', sunset: '2099-12-31', link })

  for (const how of [{ token }, {}, { token: 'x' }]) {
    const { status, headers } = await api.call('GET', '/topics', how)
    t.equal(status, 'token' in how && how.token === token ? 200 : status)
    const at = Number(/^@(\d+)$/.exec(String(headers.deprecation))?.[1])
    t.ok(at >= announced && at <= announced + 5, 'RFC 9745')
    t.equal(headers.sunset, 'Thu, 31 Dec 2099 00:00:00 GMT', 'RFC 8594')
    t.equal(
      headers.link,
      `<${link}>; rel="deprecation"; type="text/html", <${link}>; rel="sunset"; type="text/html"`,
    )
  }
  const other = await api.call('POST', events, { token, body: playing(station()) })
  t.notOk(other.headers.deprecation, 'the other track is live')

  const { json } = await api.call('GET', '/openapi.json')
  for (const [path, item] of Object.entries(object(json.paths))) {
    for (const [method, operation] of Object.entries(object(item))) {
      const isPush = /^\/(subscriptions|topics|pubsub)/.test(path)
      t.equal(object(operation).deprecated === true, isPush, `${method} ${path}`)
    }
  }
})

onEachStore('requests with a valid token are counted per route and day, over restarts', async (t, store) => {
  const hub = await startTestHub(t, store)
  const api = await openApi(t, hub)
  const { token, email } = await addUser(hub, api, own, { permissions: ['publish'] })
  const count = async (from = hub) =>
    Object.fromEntries(
      (await from.ask<Report[]>('lifecycle.status')).flatMap(({ traffic }) =>
        traffic.map(({ route, requests }) => [route, requests]),
      ),
    )
  const afterLogIn = { 'POST /auth/login': 1, 'POST /auth/reset': 1 }
  t.same(await count(), afterLogIn)
  await api.call('GET', '/topics')
  await api.call('GET', '/topics', { token: 'x' })
  await api.call('POST', '/auth/login', { body: { email, password: 'wrong password' } })
  await api.call('POST', '/auth/refresh', { body: { refreshToken: 'x' } })
  await api.call('POST', '/auth/reset', { body: { email: 'nobody@radio.example' } })
  t.same(await count(), afterLogIn, 'strangers keep nothing alive')

  await api.call('POST', events, { token, body: playing(station()) })
  await api.call('POST', events, { token, body: {} })
  await api.call('GET', '/topics', { token })
  const all = { ...afterLogIn, 'POST /events/{eventName}': 2, 'GET /topics': 1 }
  t.same(await count(), all)
  await hub.close()
  const again = await startTestHub(t, store, hub.home)
  t.same(await count(again), all)

  const refused = again.ask('lifecycle.retire', { track: 'push' })
  await t.rejects(refused, { message: /announced first/ })
  await again.ask('lifecycle.announce', { track: 'push', sunset: '2020-01-01', link })
  await t.rejects(again.ask('lifecycle.retire', { track: 'push' }), {
    message: /1 requests in the last 7 days \(\d{4}-\d\d-\d\d GET \/topics: 1\)/,
  })
})

t.test('a track that nobody uses is retired: 410 before anything else is asked', async (t) => {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  await hub.ask('lifecycle.announce', { track: 'push', sunset: '2099-01-01', link })
  await t.rejects(hub.ask('lifecycle.retire', { track: 'push' }), { message: /sunset is 2099-01-01/ })
  await hub.ask('lifecycle.announce', { track: 'push', sunset: '2020-01-01T00:00:00Z', link })
  t.match(await hub.ask('lifecycle.retire', { track: 'push' }), { track: 'push', state: 'gone' })
  await t.rejects(hub.ask('lifecycle.retire', { track: 'push' }), { message: /gone since/ })
  await t.rejects(hub.ask('lifecycle.announce', { track: 'push', sunset: '2099-01-01', link }), {
    message: /gone since/,
  })

  const gone = { message: `This part of the API is gone, see ${link}`, trace: null }
  for (const [method, path] of [
    ['GET', '/topics'],
    ['GET', '/topics/x'],
    ['POST', '/subscriptions'],
    ['GET', '/subscriptions'],
    ['GET', '/subscriptions/x'],
    ['DELETE', '/subscriptions/x'],
    ['PUT', '/pubsub'],
    ['POST', '/pubsub'],
  ] as const) {
    for (const how of [{}, { token }, { token: 'x', body: '{' }]) {
      const { status, json } = await api.call(method, path, how)
      t.equal(status, 410, `${method} ${path}`)
      t.same(json, gone)
    }
  }
  t.equal((await api.call('GET', '/health')).status, 200)
  const body = playing(station())
  t.equal((await api.call('POST', events, { token, body })).status, 201, 'the other track lives')
  const [push] = await hub.ask<Report[]>('lifecycle.status')
  t.match(push, { track: 'push', requests: 0 })
  const { json } = await api.call('GET', '/openapi.json')
  t.notOk(Object.keys(object(json.paths)).some((path) => /^\/(topics|subscriptions|pubsub)/.test(path)))

  await hub.close()
  const again = await startTestHub(t, {}, hub.home)
  const api2 = await openApi(t, again)
  t.equal((await api2.raw('GET', '/topics')).status, 410, 'it stays gone')
  const actions = (await again.ask<{ action: string }[]>('audit')).map(({ action }) => action)
  t.ok(actions.includes('lifecycle.retire') && actions.includes('lifecycle.announce'))
})

t.test('on stage prod a sunset lies in the future', async (t) => {
  const hub = await startTestHub(t, { HUB_STAGE: 'prod' })
  const request = { track: 'publish', sunset: '2020-01-01', link }
  await t.rejects(hub.ask('lifecycle.announce', request), { message: /in the future/ })
  t.match(await hub.ask('lifecycle.announce', { ...request, sunset: '2099-01-01' }), { state: 'deprecated' })
})

onEachStore('who is left is told by name, with the last request, over restarts', async (t, store) => {
  const hub = await startTestHub(t, store)
  const api = await openApi(t, hub)
  const [publisher, subscriber] = [
    await addUser(hub, api, own, { permissions: ['publish'] }),
    await addUser(hub, api, institutions[1] ?? '', { permissions: ['subscribe'] }),
  ]
  await api.call('POST', events, { token: publisher.token, body: playing(station()) })
  await api.call('GET', '/topics', { token: subscriber.token })
  const left = async (from: Pick<typeof hub, 'ask'>) =>
    Object.fromEntries(
      (await from.ask<{ track: string; left: Record<string, unknown>[] }[]>('lifecycle.status')).map(
        (one) => [one.track, one.left],
      ),
    )
  const first = await left(hub)
  const { email, userId } = subscriber
  t.match(first.push, [{ institutionId: institutions[1], email, userId, route: 'GET /topics' }])
  t.match(first.publish, [
    { email: publisher.email, institutionId: own, route: 'POST /events/{eventName}' },
    { email, route: 'POST /auth/login' },
  ])
  t.ok(Date.now() - Date.parse(String(first.push?.[0]?.lastAt)) < 60_000)
  await hub.close()
  t.same(await left(await startTestHub(t, store, hub.home)), first)
})

t.test('a brown-out switches a deprecated track off for a while', async (t) => {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  const brownout = (seconds: number) => hub.ask('lifecycle.brownout', { track: 'push', for: seconds })
  await t.rejects(brownout(600), { message: 'push must be announced first' })
  await hub.ask('lifecycle.announce', { track: 'push', sunset: '2099-12-31', link })
  for (const wrong of [-1, 86_401]) await t.rejects(brownout(wrong), { message: /^for must be a number of/ })

  t.match(await brownout(600), { track: 'push', state: 'deprecated', brownoutUntil: /^\d{4}-/ })
  for (const how of [{ token }, {}]) {
    const { status, headers, json } = await api.call('GET', '/topics', how)
    t.equal(status, 503)
    t.ok(Number(headers['retry-after']) > 590 && Number(headers['retry-after']) <= 600)
    t.match(headers.sunset, /2099/, 'with notice')
    t.match(json, { message: /Switched off until .* see https:\/\/hub\.example\/migration$/, trace: null })
  }
  t.equal(
    (await api.call('POST', events, { token, body: playing(station()) })).status,
    201,
    'the other track goes on',
  )
  await hub.ask('lifecycle.announce', { track: 'push', sunset: '2099-12-30', link })
  t.equal((await api.call('GET', '/topics', { token })).status, 503, 'another date does not end it')

  t.match(await brownout(0), { brownoutUntil: null })
  t.equal((await api.call('GET', '/topics', { token })).status, 200)
  const audit = await hub.ask<{ action: string; detail: unknown }[]>('audit', {
    action: 'lifecycle.brownout',
  })
  t.match(audit.slice(-2), [{ target: 'push', detail: { seconds: 600 } }, { detail: { seconds: 0 } }])
})

t.test(
  'whoever has an account gets in during a brown-out, and an operator also when the track is gone',
  async (t) => {
    const hub = await startTestHub(t)
    const api = await openApi(t, hub)
    const { email, refreshToken } = await addUser(hub, api, own, {
      permissions: ['operate', 'publish'],
    })
    const brownout = (seconds: number) => hub.ask('lifecycle.brownout', { track: 'publish', for: seconds })
    const page = { headers: { 'x-hub-page': '1' } }
    await hub.ask('lifecycle.announce', { track: 'publish', sunset: '2020-01-01', link })
    await brownout(600)
    for (const [path, body] of [
      ['/auth/login', { email, password }],
      ['/auth/refresh', { refreshToken }],
    ] as const) {
      const { status, headers } = await api.call('POST', path, { body })
      t.equal(status, 200, path)
      t.match(headers.sunset, /2020/, 'with notice')
    }
    t.equal((await api.raw('GET', '/auth/reset')).status, 200)
    t.equal((await api.raw('GET', '/auth/reset.js')).status, 200)
    const { resetToken } = await hub.ask<{ resetToken: string }>('users.reset-password', { email })
    const reset = await api.call('POST', '/auth/reset', { body: { token: resetToken, password } })
    t.match(reset, { status: 200, headers: { sunset: /2020/ } })
    const token = await logIn()
    const body = playing(station())
    t.equal((await api.call('POST', events, { body })).status, 503)
    const end = await api.call('POST', '/operate/lifecycle.brownout', {
      token,
      body: { track: 'publish', for: 0 },
    })
    t.equal(end.status, 200, 'an operator ends it')

    await hub.ask('lifecycle.retire', { track: 'publish' })
    for (const path of ['/auth/login', '/auth/refresh', '/auth/reset']) {
      t.equal((await api.call('POST', path)).status, 410)
    }
    await logIn()

    async function logIn() {
      const session = await api.call('POST', '/auth/session', { ...page, body: { email, password } })
      t.equal(session.status, 200)
      return String(session.json.token)
    }
  },
)
