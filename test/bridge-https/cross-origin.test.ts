import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import t from 'tap'
import { institutions } from '../events.ts'
import { startTestHub } from '../start-hub.ts'
import { addUser, openApi } from './api.ts'

const [own = ''] = institutions
const origin = 'https://station.example'
const paths = {
  '/livestreams': 'GET',
  '/livestreams/x/now': 'GET',
  '/livestreams/x/stream': 'GET',
  '/livestreams/x/at/y': 'GET',
  '/now': 'GET',
  '/stream': 'GET',
  '/embed/v1.js': 'GET',
  '/auth/mqtt': 'POST',
}

t.test('pages of other origins read what pages need, errors included, and nothing else', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLIC_PAGE: 'false' })
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own, { permissions: ['subscribe'] })
  const publisher = await addUser(hub, api, own, { permissions: ['publish'] })
  const tag = String((await api.call('GET', '/livestreams', { token })).headers.etag)
  for (const [method, path, status, how] of [
    ['GET', '/livestreams', 200, { token }],
    ['GET', '/livestreams', 304, { token, headers: { 'if-none-match': tag } }],
    ['GET', '/livestreams', 401, {}],
    ['GET', '/livestreams', 401, { headers: { cookie: '__Host-Http-hub-session=x' } }],
    ['GET', '/livestreams', 403, { token: 'x' }],
    ['GET', '/now', 200, { token }],
    ['GET', '/now', 401, { headers: { cookie: '__Host-Http-hub-session=x' } }],
    ['GET', '/livestreams/x/now', 404, { token }],
    ['GET', '/livestreams/x/stream', 404, { token }],
    ['GET', '/livestreams/x/at/y', 400, { token }],
    ['GET', '/livestreams', 403, { token: publisher.token }],
    ['POST', '/auth/mqtt', 200, { token }],
    ['POST', '/auth/mqtt', 400, { token, body: { filters: [1] } }],
    ['POST', '/auth/mqtt', 400, { token, body: 'x' }],
    ['POST', '/auth/mqtt', 413, { token, body: 'x'.repeat(500_000) }],
    ['POST', '/auth/mqtt', 401, {}],
    ['POST', '/auth/mqtt', 403, { token: 'x' }],
  ] as const) {
    const answer = await api.call(method, path, { ...how, headers: { origin, ...Object(how).headers } })
    t.equal(answer.status, status, `${method} ${path}`)
    t.equal(answer.headers['access-control-allow-origin'], '*', `${method} ${path} ${status}`)
    t.equal(answer.headers['access-control-expose-headers'], 'etag, retry-after')
    t.equal(answer.headers['access-control-allow-credentials'], undefined)
  }
  for (const [method, path] of [
    ['GET', '/topics'],
    ['POST', '/auth/login'],
    ['PUT', '/auth/session'],
    ['GET', '/livestreams/x/events'],
    ['GET', '/metrics'],
    ['GET', '/nothing'],
  ] as const) {
    const { headers } = await api.raw(method, path, { token, headers: { origin } })
    t.equal(headers['access-control-allow-origin'], undefined, `${method} ${path}`)
  }
})

t.test('a preflight is answered without a token, and only where pages may read', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLIC_PAGE: 'false' })
  const api = await openApi(t, hub)
  const ask = (path: string, headers: Record<string, string>) =>
    api.raw('OPTIONS', path, { headers: { origin, ...headers } })
  for (const [path, method] of Object.entries(paths)) {
    const answer = await ask(path, {
      'access-control-request-method': method,
      'access-control-request-headers': 'authorization,content-type',
    })
    t.match(answer, {
      status: 204,
      text: '',
      headers: {
        'access-control-allow-origin': '*',
        'access-control-allow-methods': method,
        'access-control-allow-headers': 'authorization, content-type, last-event-id, if-none-match',
        'access-control-allow-credentials': undefined,
      },
    })
    t.equal((await ask(path, {})).status, 404, 'any other OPTIONS is a wrong method')
  }
  for (const path of ['/topics', '/auth/session', '/auth/login', '/events/x', '/nothing']) {
    const answer = await ask(path, { 'access-control-request-method': 'GET' })
    t.match(answer, { status: 404, headers: { 'access-control-allow-origin': undefined } }, path)
  }
})

t.test('a page also reads that its client has too many requests under way behind a proxy', async (t) => {
  const home = t.testdir({ 'hub.json': JSON.stringify({ trustedProxies: ['127.0.0.1'] }) })
  const hub = await startTestHub(t, {
    HUB_CONFIG: join(home, 'hub.json'),
    HUB_MAX_CONNECTIONS_PER_ADDRESS: '1',
  })
  const api = await openApi(t, hub)
  const client = { 'x-forwarded-for': '192.0.2.7' }
  const held = request(`https://127.0.0.1:${hub.httpsPort}/auth/login`, {
    method: 'POST',
    ca: readFileSync(hub.caPath),
    servername: 'localhost',
    agent: false,
    headers: { ...client, 'content-type': 'application/json', 'content-length': 2, expect: '100-continue' },
  })
  held.on('error', () => undefined)
  t.teardown(() => held.destroy())
  held.flushHeaders()
  await once(held, 'continue')
  t.match(await api.call('GET', '/livestreams', { from: '127.0.0.1', headers: { origin, ...client } }), {
    status: 503,
    headers: { 'access-control-allow-origin': '*', 'access-control-expose-headers': 'etag, retry-after' },
  })
})
