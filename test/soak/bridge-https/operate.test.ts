import { join } from 'node:path'
import t, { type Test } from 'tap'
import { lifetimes } from '../../../bridge-https/users/tokens.ts'
import type { Operation } from '../../../operations/operation.ts'
import { type OperationName, operationNames, operations } from '../../../operations/operations.ts'
import { type Api, addUser, openApi } from '../../bridge-https/api.ts'
import { object } from '../../bridge-https/description.ts'
import { expiredToken } from '../../bridge-https/expired-token.ts'
import { connectPublisher } from '../../clients.ts'
import { institutions, playing, station } from '../../events.ts'
import { onRedis } from '../../redis-server.ts'
import { startTestHub, type TestHub } from '../../start-hub.ts'
import { startNetwork } from '../../store/slow-network.ts'

/*
 * Operators have the commands of `hubctl` over HTTPS, too (design.md §9).
 */
const [own = '', other = ''] = institutions

t.test('each command is at every door: socket, HTTPS and the description', async (t) => {
  const hub = await startTestHub(t)
  const { document } = (await openApi(t, hub)).description
  const described = Object.entries(object(document.paths)).flatMap(([path, item]) =>
    path.startsWith('/operate/')
      ? [[path.slice('/operate/'.length), object(object(item).post)] as const]
      : [],
  )
  t.same(described.map(([name]) => name).sort(), [...operationNames].sort())
  for (const [name, operation] of described) {
    t.equal(operation['x-effect'], Reflect.get(operations, name).effect, name)
  }
  for (const name of operationNames) {
    await hub.ask(name, { ...exampleOf(name), nonsense: 1 }).then(
      () => t.fail(`${name} took an argument that it does not have`),
      (error: Error) => t.equal(error.message, 'there is no argument "nonsense"', `${name} is on the socket`),
    )
  }
})

t.test('no command without a valid token of an operator, and nobody else learns anything', async (t) => {
  const env = { HUB_PUBLIC_URL: 'https://hub.example', HUB_PUBLISH_RATE: '0' }
  const first = await startTestHub(t, env)
  const { userId } = await addUser(first, await openApi(t, first), own, { permissions: ['operate'] })
  await first.close()
  const expired = await expiredToken(join(first.home, 'data', 'store'), {
    userId,
    issuer: env.HUB_PUBLIC_URL,
    ageMs: 2 * lifetimes.access * 1000,
  })
  const hub = await startTestHub(t, env, first.home)
  const api = await openApi(t, hub)
  const [publisher, subscriber, operator] = await Promise.all(
    ['publish', 'subscribe', 'operate'].map((one) => addUser(hub, api, own, { permissions: [one] })),
  )
  const before = await hub.ask<object[]>('audit')
  for (const name of operationNames) {
    const body = exampleOf(name)
    for (const [who, token, status, code] of [
      ['nobody', undefined, 401, 'authorization.missing'],
      ['an expired token', expired, 403, 'authorization.invalid'],
      ['a refresh token', operator?.refreshToken, 403, 'authorization.invalid'],
      ['a publisher', publisher?.token, 403, 'authorization.permission'],
      ['a subscriber', subscriber?.token, 403, 'authorization.permission'],
    ] as const) {
      const answer = await api.call('POST', `/operate/${name}`, { token, body })
      t.equal(answer.status, status, `${name} for ${who}`)
      t.same(Object.keys(answer.json).sort(), ['errors', 'message', 'trace'], `${name} tells ${who} no more`)
      t.match(answer.json.errors, [{ path: '.headers.authorization', errorCode: code }])
    }
  }
  t.same(await hub.ask('audit'), before, 'nothing was changed')
  for (const name of operationNames.filter((one) => operations[one].effect === 'none')) {
    const body = exampleOf(name)
    const { status } = await api.call('POST', `/operate/${name}`, { token: operator?.token, body })
    t.ok([200, 409].includes(status), `${name} for an operator: ${status}`)
  }
})

t.test('the answers are those of the socket', async (t) => {
  const { hub, ask } = await startOperator(t)
  await hub.publisher([own])
  const studio = await connectPublisher(t, hub, await hub.publisher([own]), own)
  const { id } = await studio.publish(playing(station()))
  const reading = operationNames.filter((name) => {
    const { effect, singleAnswerArgs }: Operation = operations[name]
    return effect === 'none' && singleAnswerArgs === undefined
  })
  for (const [name, args] of [
    ...reading.map((name) => [name, exampleOf(name)] as const),
    ['events.show', { id }] as const,
    ['events.newest', { institution: own }] as const,
  ]) {
    const { status, json } = await ask(name, args)
    const onSocket = await hub.ask(name, { ...args }).then(
      (result) => ({ status: 200, json: { result } }),
      ({ message }: Error) => ({ status: 409, json: { message, trace: null } }),
    )
    t.equal(status, onSocket.status, name)
    // These tell the time at which they were asked.
    if (['status', 'trend', 'check'].includes(name)) continue
    t.same(json, onSocket.json, name)
  }
  const dry = { institution: own, payload: Buffer.from('{}').toString('base64') }
  t.match((await ask('check', dry)).json, { result: { outcome: 'invalid' } })
  t.match((await ask('status')).json, { result: { stage: 'test', budget: { count: 1 } } })
})

t.test('a change stands in the audit log with the e-mail address, a secret in no log', async (t) => {
  const { hub, ask, email } = await startOperator(t)
  const added = await ask('credentials.add', { role: 'publisher', label: 'kw1', institutions: [own] })
  t.equal(added.headers['cache-control'], 'no-store')
  const { username, password } = object(added.json.result)
  t.ok(password)
  const rotated = object((await ask('credentials.rotate', { username, revokeAfter: 60 })).json.result)
  const user = object((await ask('users.add', { email: 'new@radio.example', institution: own })).json.result)
  t.match((await ask('credentials.revoke', { username })).json, { result: { username, revoked: true } })
  const entries = await hub.ask<{ who: string; action: string; target: string }[]>('audit')
  t.same(
    entries.slice(-4).map(({ who, action, target }) => [who, action, target]),
    [
      [email, 'credentials.add', username],
      [email, 'credentials.rotate', username],
      [email, 'users.add', 'new@radio.example'],
      [email, 'credentials.revoke', username],
    ],
  )
  const logs = JSON.stringify([hub.lines, entries])
  for (const secret of [password, rotated.password, user.resetToken]) {
    t.ok(typeof secret === 'string' && secret.length > 20)
    t.notOk(logs.includes(String(secret)))
  }
})

t.test('wrong arguments are named, and change nothing', async (t) => {
  const { hub, ask } = await startOperator(t)
  const before = await hub.ask('audit')
  const publisher = { role: 'publisher', label: 'kw1', institutions: [own] }
  for (const [name, args, path] of [
    ['credentials.add', { ...publisher, role: 'admin' }, '.body.role'],
    ['credentials.add', { ...publisher, institutions: own }, '.body.institutions'],
    ['credentials.add', { ...publisher, institutions: [1] }, '.body.institutions.0'],
    ['credentials.add', { role: 'publisher' }, '.body.label'],
    ['credentials.add', { ...publisher, institutions: ['x'] }, '.body.institutions.0'],
    ['credentials.add', { ...publisher, label: 'BAD LABEL' }, '.body.label'],
    ['credentials.add', { ...publisher, classes: ['jingle'] }, '.body.classes.0'],
    ['credentials.add', { role: 'subscriber', label: 'x', filters: ['radio/+', '#'] }, '.body.filters.1'],
    ['credentials.add', { role: 'subscriber', label: 'x', filters: ['radio//data'] }, '.body.filters.0'],
    ['credentials.rotate', { username: 'x', revokeafter: 60 }, '.body.revokeafter'],
    ['credentials.rotate', { username: 'x', revokeAfter: -5 }, '.body.revokeAfter'],
    ['users.add', { email: 'a@b.example', institution: own, permissions: ['root'] }, '.body.permissions.0'],
    ['events.list', { since: 'yesterday-ish' }, '.body.since'],
    ['lifecycle.announce', { track: 'push', sunset: 'soon', link: 'https://a.example' }, '.body.sunset'],
    ['credentials.rotate', { username: 'x', revokeAfter: '24h' }, '.body.revokeAfter'],
    ['credentials.show', {}, '.body.username'],
    ['users.add', { email: 'a@b\r\nbcc: c@d', institution: own }, '.body.email'],
    ['users.add', { email: 'a@b.example', institution: 'x' }, '.body.institution'],
    ['sessions.drop', { clientId: '' }, '.body.clientId'],
    ['events.list', { institution: own, limit: 100_000 }, '.body.limit'],
    ['events.list', { institution: own, outcome: 'good' }, '.body.outcome'],
    ['events.tail', { after: -1 }, '.body.after'],
    ['status', { args: {} }, '.body.args'],
    ['status', [], '.body'],
    ['lifecycle.retire', { track: 'all' }, '.body.track'],
  ] as const) {
    const { status, json } = await ask(name, args)
    t.equal(status, 400, `${name} ${JSON.stringify(args)}`)
    t.match(json.errors, [{ path }])
    t.notMatch(JSON.stringify(json), /expected to match/, 'in words')
  }
  t.equal((await ask('status', '{ no JSON')).status, 400)
  t.same(await hub.ask('audit'), before)
})

t.test('a refusal is a 409 with its words, an unknown command a 404', async (t) => {
  const { hub, ask, api, token } = await startOperator(t)
  for (const [name, args, message] of [
    ['credentials.revoke', { username: 'pub-x-1' }, 'there is no credential "pub-x-1"'],
    ['sessions.drop', { clientId: 'ghost' }, 'there is no session "ghost"'],
    ['credentials.add', { role: 'subscriber', label: 'x' }, /at least one filter within radio/],
    [
      'events.list',
      { livestream: 'x', institution: own },
      'livestream and institution cannot be given together',
    ],
    ['store.accept', {}, /was not replaced/],
  ] as const) {
    const { status, json } = await ask(name, args)
    t.equal(status, 409, name)
    t.match(json, { message, trace: null })
  }
  for (const name of ['nothing', 'constructor', '__proto__', 'credentials', '%zz', 'status/x', '']) {
    t.same((await ask(name)).json, { message: 'Not found', trace: null }, name)
  }
  t.equal((await api.call('GET', '/operate/status', { token })).status, 404)
  t.equal((await api.call('POST', '/operate/status', { token })).status, 200, 'arguments may be left out')
  t.equal((await ask('status', '')).status, 200, 'also where a content type is said')
  for (const [name, path] of [
    ['credentials.add', '.body.role'],
    ['credentials.show', '.body.username'],
  ] as const) {
    const { status, json } = await ask(name, '')
    t.match({ status, json }, { status: 400, json: { errors: [{ path }] } }, `${name} without a body`)
  }
  t.notOk(hub.lines.some(({ msg }) => msg === 'an admin command failed'))
})

t.test('events are followed by asking what was decided since', async (t) => {
  const { hub, ask } = await startOperator(t)
  const studio = await connectPublisher(t, hub, await hub.publisher([own]), own)
  await studio.publish(playing(station(), { title: 'Before' }))
  const begun = await ask('events.tail')
  t.match(begun.json, { result: { events: [], leftOut: 0 } })
  await studio.publish(playing(station(), { title: 'One' }))
  await studio.publish(playing(station(), { title: 'Bad', length: 0 }))
  const since = async (after: unknown, args: object = {}) =>
    object((await ask('events.tail', { after, ...args })).json.result)
  const { next } = object(begun.json.result)
  const page = await since(next)
  t.match(page, {
    events: [
      { title: 'One', outcome: 'published' },
      { title: 'Bad', outcome: 'invalid' },
    ],
    leftOut: 0,
  })
  t.match(await since(page.next), { events: [], next: page.next, leftOut: 0 })
  t.match((await since(next, { outcome: 'refused' })).events, [{ title: 'Bad' }])
  t.same((await since(next, { institution: other })).events, [])
  t.same((await since(next, { livestream: station(0, 1).id })).events, [])
  t.match(await since(Number.MAX_SAFE_INTEGER), { events: [], next: Number.MAX_SAFE_INTEGER })
})

t.test('what is asked counts like what is published', async (t) => {
  const { ask } = await startOperator(t, { HUB_PUBLISH_RATE: '1' })
  const answers = await Promise.all(Array.from({ length: 10 }, () => ask('status')))
  const refused = answers.find(({ status }) => status === 429)
  t.ok(Number(refused?.headers['retry-after']) >= 1)
})

t.test('commands of an operator that wait when the operator is removed are not carried out', async (t) => {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  const { token, email } = await addUser(hub, api, own, { permissions: ['operate'] })
  const body = { role: 'publisher', label: 'x', institutions: [own] }
  let removed: Promise<unknown> | undefined
  let isRemoved = false
  let late = 0
  const add = async () => {
    const { status } = await api.call('POST', '/operate/credentials.add', { token, body })
    if (isRemoved && status === 200) late++
    removed ??= hub.ask('users.remove', { email }).then(() => {
      isRemoved = true
    })
  }
  await Promise.all(Array.from({ length: 20 }, add))
  await removed
  t.ok(late <= 1, `${late} were carried out after that: one may have begun before`)
})

onRedis('a node that hears late of the removal of an operator does nothing for it', async (t, redis) => {
  const network = await startNetwork(t, redis.port)
  const env = { HUB_PUBLIC_URL: 'https://hub.example' }
  const hub = await startTestHub(t, { ...env, HUB_REDIS_URL: network.url })
  const other = await startTestHub(t, { ...env, HUB_REDIS_URL: redis.url })
  const api = await openApi(t, hub)
  const { token, email } = await addUser(hub, api, own, { permissions: ['operate'] })
  const credential = { role: 'publisher', label: 'x', institutions: [own] }
  const operate = (name: string, body: object) => api.call('POST', `/operate/${name}`, { token, body })
  const isKnown = async () => (await other.ask<object[]>('users.list')).length > 0
  await other.until(isKnown)

  network.hold()
  const asked = [operate('credentials.add', credential), operate('credentials.list', {})]
  const removed = other.ask('users.remove', { email })
  await other.until(async () => !(await isKnown()))
  network.release()
  const answers = await Promise.all(asked)
  await removed
  for (const { status, json } of answers) {
    // 409: the node did not see other nodes' changes in time, and did nothing.
    t.ok([403, 409].includes(status), `${status}`)
    t.equal(json.result, undefined)
  }
  t.strictSame(await other.ask('credentials.list'), [])
})

t.test('an operator that removes itself is told that this was done', async (t) => {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  const { token, email } = await addUser(hub, api, own, { permissions: ['operate'] })
  t.equal((await api.call('POST', '/operate/users.remove', { token, body: { email } })).status, 200)
})

t.test('operators are no traffic of a track that retires', async (t) => {
  const { hub, api } = await startOperator(t)
  const log = async () => JSON.stringify(await hub.ask('lifecycle.status'))
  const before = await log()
  const { refreshToken } = await addUser(hub, api, own, { permissions: ['operate'] })
  await api.call('POST', '/auth/refresh', { body: { refreshToken } })
  t.equal(await log(), before)
  t.notMatch(before, /"route"/)
})

function exampleOf(name: OperationName): object {
  return object([Reflect.get(operations[name].args, 'examples')].flat()[0])
}

async function startOperator(t: Test, env: Record<string, string> = {}) {
  const hub: TestHub = await startTestHub(t, env)
  const api: Api = await openApi(t, hub)
  const { token, email } = await addUser(hub, api, other, { permissions: ['operate'] })
  const ask = (name: string, body: unknown = {}) => api.call('POST', `/operate/${name}`, { token, body })
  return { hub, api, token, email, ask }
}
