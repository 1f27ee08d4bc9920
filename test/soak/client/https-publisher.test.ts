import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createHttpsPublisher, type HttpsPublisherOptions } from '../../../client/node.ts'
import { addUser, openApi, password } from '../../bridge-https/api.ts'
import { shareCertificates } from '../../certificates.ts'
import { institutions, playing, station } from '../../events.ts'
import { listen } from '../../listen.ts'
import { startTestHub, temporaryDirectory } from '../../start-hub.ts'

const [own = ''] = institutions

t.test('the first event of a livestream is published by one call', async (t) => {
  const { publisher } = await open(t)
  const report = await publisher.publish(playing(station(), { title: 'Ebbe und Flut' }))
  t.match(report, {
    outcome: 'published',
    statuses: { published: 1, blocked: 0, failed: 0 },
    id: /^\d+$/,
    event: { title: 'Ebbe und Flut' },
  })
})

t.test('a refusal has the shape that it has over MQTT', async (t) => {
  const { publisher } = await open(t)
  const invalid = await publisher.publish(playing(station(), { length: 0 })).catch((error) => error)
  t.match(invalid, { name: 'EventRefused', outcome: 'invalid', errors: [{ path: '.length' }] })
  const blocked = await publisher.publish(playing(station(1))).catch((error) => error)
  t.match(blocked, { outcome: 'blocked', errors: [{ path: /^\.services\.0/ }] })
  const nameless = await publisher.publish({ title: 'x' }).catch((error) => error)
  t.match(nameless, { outcome: 'invalid', errors: [{ path: '.event', errorCode: 'event.name' }] })
  await t.rejects(publisher.publish(playing(station(), { title: 'x'.repeat(409_600) })), /payload|409600/)
})

t.test('a check publishes nothing, and hands warnings on', async (t) => {
  const { publisher } = await open(t)
  const report = await publisher.check(playing(station()))
  t.match(report, { dryRun: true, id: null, warnings: [{ errorCode: 'topic.created' }] })
})

t.test('those who publish at the same time log in once', async (t) => {
  let logins = 0
  const server = await openServer(t, (path, _token, answer) => {
    if (path === '/auth/login') answer(200, login(++logins))
    else answer(201, published)
  })
  const publisher = createHttpsPublisher({ ...server, email: 'a@b.example', password: 'x' })
  const events = Array.from({ length: 5 }, (_, count) => playing(station(), { playlistItemId: `${count}` }))
  await Promise.all(events.map((event) => publisher.publish(event)))
  t.equal(logins, 1)
  await publisher.close()
})

t.test('a wrong password says so', async (t) => {
  const { publisher } = await open(t, { password: 'wrong horse' })
  await t.rejects(publisher.publish(playing(station())), {
    code: 'login.refused',
    message: /password is wrong/,
  })
})

t.test('a user without the permission is not logged in for ever', async (t) => {
  const { publisher } = await open(t, {}, ['subscribe'])
  await t.rejects(publisher.publish(playing(station())), {
    code: 'login.refused',
    message: /permission|authorization/i,
  })
})

t.test('a token that the hub knows no more is replaced', async (t) => {
  const asked: string[] = []
  const server = await openServer(t, (path, token, answer) => {
    asked.push(`${path} ${token ?? ''}`.trim())
    if (path === '/auth/login') answer(200, login(asked.length))
    else if (token === 'Bearer 1') answer(403, { errors: [] })
    else answer(201, published)
  })
  const publisher = createHttpsPublisher({ ...server, email: 'a@b.example', password: 'x' })
  t.match(await publisher.publish(playing(station())), { id: '7261' })
  const path = '/events/de.org.hub.v1.radio.track.playing'
  t.same(asked, ['/auth/login', `${path} Bearer 1`, '/auth/login', `${path} Bearer 3`])
  await publisher.close()
})

t.test('a token that has expired is renewed without the password', async (t) => {
  const asked: string[] = []
  const server = await openServer(t, (path, _token, answer) => {
    asked.push(path)
    if (path === '/auth/login') answer(200, { ...login(1), expiresIn: 1 })
    else if (path === '/auth/refresh') answer(200, login(2))
    else answer(201, published)
  })
  const publisher = createHttpsPublisher({ ...server, email: 'a@b.example', password: 'x' })
  await publisher.publish(playing(station()))
  await publisher.publish(playing(station()))
  const path = '/events/de.org.hub.v1.radio.track.playing'
  t.same(asked, ['/auth/login', path, '/auth/refresh', path])
  await publisher.close()
})

t.test('429 and 503 are respected: Retry-After says how long', async (t) => {
  const at: number[] = []
  const server = await openServer(t, (path, _token, answer) => {
    if (path === '/auth/login') return void answer(200, login(1))
    at.push(performance.now())
    if (at.length === 1) answer(429, {}, { 'retry-after': '1' })
    else if (at.length === 2) answer(503, {}, { 'retry-after': '0' })
    else answer(201, published)
  })
  const publisher = createHttpsPublisher({ ...server, email: 'a@b.example', password: 'x' })
  t.match(await publisher.publish(playing(station())), { id: '7261' })
  const [first = 0, second = 0] = at
  t.ok(second - first >= 999, `${second - first} ms`)
  await publisher.close()
})

t.test('a hub that stays away, or asks to wait too long, is an error in the end', async (t) => {
  const server = await openServer(t, (_path, _token, answer) => answer(503, {}, { 'retry-after': '3600' }))
  const login = { email: 'a@b.example', password: 'x', patience: 200 }
  const waiting = createHttpsPublisher({ ...server, ...login })
  await t.rejects(waiting.publish(playing(station())), { code: 'hub.unavailable', message: /503/ })
  const nobody = createHttpsPublisher({ ...login, url: 'https://localhost:1' })
  await t.rejects(nobody.publish(playing(station())), { code: 'hub.unavailable' })
})

t.test('a retired route is an error at once', async (t) => {
  const server = await openServer(t, (path, _token, answer) =>
    path === '/auth/login' ? answer(200, login(1)) : answer(410, { message: 'gone' }),
  )
  const publisher = createHttpsPublisher({ ...server, email: 'a@b.example', password: 'x' })
  await t.rejects(publisher.publish(playing(station())), { code: 'hub.unavailable', message: /410 gone/ })
})

t.test('after close nothing is taken in', async (t) => {
  const { publisher } = await open(t)
  const published = publisher.publish(playing(station()))
  await publisher.close()
  t.match(await published, { outcome: 'published' })
  await t.rejects(publisher.publish(playing(station())), { code: 'closed' })
})

t.test('a wrong option is named', async (t) => {
  const good = { url: 'https://localhost', email: 'a@b.example', password: 'x' }
  for (const [wrong, message] of [
    [{ url: 'http://localhost' }, /^url/],
    [{ email: '' }, /^email/],
    [{ patience: -1 }, /^patience/],
    [{ ca: '/does/not/exist' }, /^ca/],
  ] as const) {
    t.throws(() => createHttpsPublisher({ ...good, ...wrong }), { code: 'option.invalid', message })
  }
})

const published = { statuses: { published: 1, blocked: 0, failed: 0 }, event: { id: '7261' }, trace: null }
const login = (number: number) => ({ token: `${number}`, refreshToken: `refresh-${number}`, expiresIn: 3600 })

async function open(t: Test, options: Partial<HttpsPublisherOptions> = {}, permissions = ['publish']) {
  const hub = await startTestHub(t)
  const { email } = await addUser(hub, await openApi(t, hub), own, { permissions })
  const url = `https://localhost:${hub.httpsPort}`
  const publisher = createHttpsPublisher({
    url,
    email,
    password,
    ca: hub.caPath,
    patience: 10_000,
    ...options,
  })
  t.teardown(() => publisher.close())
  return { publisher }
}

/** A hub that answers as the test says. */
async function openServer(
  t: Test,
  script: (
    path: string,
    token: string | undefined,
    answer: (status: number, body: object, headers?: Record<string, string>) => ServerResponse,
  ) => void,
) {
  const certs = await temporaryDirectory(t)
  await shareCertificates(certs)
  const read = (name: string) => readFileSync(join(certs, name))
  const server = createServer(
    { key: read('server-key.pem'), cert: read('server.pem') },
    (request, response) => {
      request.resume()
      script(request.url ?? '', request.headers.authorization, (status, body, headers) =>
        response.writeHead(status, headers).end(JSON.stringify(body)),
      )
    },
  )
  const port = await listen(t, server)
  return { url: `https://localhost:${port}`, ca: join(certs, 'ca.pem') }
}
