import { join } from 'node:path'
import t, { type Test } from 'tap'
import { deadLetterChange } from '../../../delivery/queue/work-records.ts'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { institutions, playing, station } from '../../events.ts'
import { startTestHub } from '../../start-hub.ts'
import { onEachStore, openStoreOf } from '../../stores.ts'
import { words } from '../../words.ts'

const [own = '', foreign = ''] = institutions
const { id } = station()
const name = `de.org.hub.test.${encodeURIComponent(id)}`
const path = `projects/hub/topics/${name}`
const request = {
  type: 'PUBSUB',
  method: 'PUSH',
  url: 'https://203.0.114.9/hook',
  contact: 'studio@kuestenfunk.example',
  topic: id,
}

/** A message that the hub gave up. */
const letter = {
  sequence: 1,
  messageId: '1',
  details: {},
  enqueuedAt: Date.now(),
  tries: 1,
  refusals: 0,
  attempts: [],
  givenUpAt: new Date().toISOString(),
  reason: 'answered 500',
}

async function start(t: Test, env: Record<string, string> = {}) {
  const hub = await startTestHub(t, env)
  const api = await openApi(t, hub)
  const user = await addUser(hub, api, own)
  const event = playing(station())
  await api.call('POST', '/events/de.org.hub.v1.radio.track.playing', { token: user.token, body: event })
  return { hub, api, ...user }
}

t.test('topics (service.md §4.1, §2.8)', async (t) => {
  const { hub, api, token } = await start(t)
  const get = (topic: string) => api.call('GET', `/topics/${topic}`, { token })
  const shown = {
    type: 'PUBSUB',
    id,
    name,
    path,
    labels: {
      title: station().title,
      externalId: station().externalId,
      publisherId: station().publisher.id,
      institutionId: own,
    },
  }
  const listed = await api.call('GET', '/topics', { token })
  t.equal(listed.status, 200)
  t.same(listed.json, [shown])
  const found = await get(encodeURIComponent(name))
  t.equal(found.status, 200)
  t.same(found.json, shown)
  t.same((await get(name)).json, shown, 'also with its own percent signs left as they are')

  const absent = { message: 'Topic not found', trace: null }
  for (const other of [
    encodeURIComponent(name.replace('.test.', '.prod.')),
    encodeURIComponent(`de.org.hub.test.${encodeURIComponent(station(0, 1).id)}`),
    encodeURIComponent(id),
    'nothing',
    'a%2Fb',
    'de.org.hub.test.',
    '..%2f..%2fhealth',
    '__proto__',
    'x'.repeat(5_000),
  ]) {
    const { status, json } = await get(other)
    t.equal(status, 404, other)
    t.same(json, absent)
  }
  for (const other of ['%zz', '%', '%ff']) {
    const { status, json } = await get(other)
    t.equal(status, 404, other)
    t.same(json, { message: 'Not found', trace: null })
  }
  const { token: theirs } = await addUser(hub, api, foreign)
  t.same((await api.call('GET', '/topics', { token: theirs })).json, [shown], 'topics are for everybody')
})

onEachStore('the life of a subscription (service.md §4.1)', async (t, store) => {
  const { hub, api, token } = await start(t, { ...store, HUB_SERVICE_ACCOUNT: 'pushes@hub.example' })
  const created = await api.call('POST', '/subscriptions', { token, body: request })
  t.equal(created.status, 201)
  const { json } = created
  t.match(json.name, /^de\.org\.hub\.subscription\.[0-9a-f-]{36}$/)
  t.same(json, {
    type: 'PUBSUB',
    method: 'PUSH',
    name: json.name,
    path: `projects/hub/subscriptions/${json.name}`,
    topic: { id, name, path },
    ackDeadlineSeconds: 20,
    retryPolicy: null,
    serviceAccount: 'pushes@hub.example',
    url: request.url,
    contact: request.contact,
    institutionId: own,
    state: 'active',
    since: json.since,
    reason: null,
  })

  const one = `/subscriptions/${json.name}`
  const { token: colleague } = await addUser(hub, api, own)
  const { token: stranger } = await addUser(hub, api, foreign)
  for (const reader of [token, colleague]) {
    for (const [where, expected] of [
      [one, json],
      ['/subscriptions', [json]],
    ] as const) {
      const answer = await api.call('GET', where, { token: reader })
      t.equal(answer.status, 200, where)
      t.same(answer.json, expected, where)
    }
  }
  const absent = { message: 'Subscription not found', trace: null }
  t.same((await api.call('GET', '/subscriptions', { token: stranger })).json, [])
  for (const method of ['GET', 'DELETE']) {
    for (const where of [one, '/subscriptions/unknown', '/subscriptions/a%2Fb']) {
      const answer = await api.call(method, where, { token: stranger })
      t.equal(answer.status, 404)
      t.same(answer.json, absent)
    }
  }
  const replay = { subscription: json.name }
  t.same((await api.call('PUT', '/pubsub', { token, body: replay })).json, { replayed: 0, trace: null })
  const foreignReplay = await api.call('PUT', '/pubsub', { token: stranger, body: replay })
  t.equal(foreignReplay.status, 404)
  t.same(foreignReplay.json, absent)

  await hub.close()
  const opened = await openStoreOf(store, join(hub.home, 'data'))
  await opened.commit([deadLetterChange(String(json.name), letter, Buffer.from('{}'))])
  await opened.close()
  const again = await startTestHub(t, { ...store, HUB_PUBLIC_URL: 'https://hub.example' }, hub.home)
  const api2 = await openApi(t, again)
  const { token: later } = await addUser(again, api2, own)
  t.same((await api2.call('GET', one, { token: later })).json, json, 'it survives a restart as it was made')
  const replayOne = (messageId: string) =>
    api2.call('PUT', '/pubsub', { token: later, body: { ...replay, messageId } })
  const noLetter = await replayOne('2')
  t.equal(noLetter.status, 404)
  t.same(noLetter.json, { message: 'Dead letter not found', trace: null })
  t.same((await replayOne('1')).json, { replayed: 1, trace: null })
  t.equal((await replayOne('1')).status, 404, 'it is none any more')
  const deleted = await api2.call('DELETE', one, { token: later })
  t.equal(deleted.status, 200)
  t.same(deleted.json, { valid: true, trace: null })
  t.equal((await api2.call('DELETE', one, { token: later })).status, 404)
  t.same((await api2.call('GET', '/subscriptions', { token: later })).json, [])
})

t.test('a field that nobody reads is named in the answer, and changes nothing else', async (t) => {
  const { api, token } = await start(t)
  const subscribe = (more: object) =>
    api.call('POST', '/subscriptions', { token, body: { ...request, ...more } })
  const plain = await subscribe({})
  t.notOk('warnings' in plain.json)
  const { status, json } = await subscribe({ kidns: ['control'], comment: 'ours' })
  t.equal(status, 201)
  const { warnings, ...rest } = json
  t.match(
    warnings,
    ['.body.kidns', '.body.comment'].map((path) => ({
      path,
      message: 'The field is not known here',
      errorCode: 'additionalProperties.openapi.validation',
    })),
  )
  t.same(Object.keys(rest), Object.keys(plain.json))
  const read = await api.call('GET', `/subscriptions/${json.name}`, { token })
  t.same(read.json, rest, 'nothing of it is kept')
})

t.test('a subscription that cannot be is a 400 with the place, or a 404 without the topic', async (t) => {
  const { api, token } = await start(t)
  const subscribe = (body: unknown) => api.call('POST', '/subscriptions', { token, body })
  for (const field of ['type', 'method', 'url', 'contact', 'topic']) {
    for (const [value, code] of [
      [undefined, 'required'],
      [7, 'type'],
      [null, 'type'],
    ] as const) {
      const { status, json } = await subscribe({ ...request, [field]: value })
      t.equal(status, 400)
      const message =
        code === 'required'
          ? `A required field is missing: expected "${field}" in the object`
          : `The value has the wrong type: got ${value}, expected string`
      t.same(json, {
        message: 'Invalid input',
        errors: [{ path: `.body.${field}`, message, errorCode: `${code}.openapi.validation` }],
        trace: null,
      })
    }
  }
  t.match((await subscribe({ ...request, contact: 'nobody' })).json, {
    errors: [{ path: '.body.contact', errorCode: 'format.openapi.validation' }],
  })
  for (const url of [
    '',
    ...words(`
      http://hooks.example/x https://localhost/x https://127.0.0.1/x https://[::1]/x https://10.1.2.3/x
      https://169.254.169.254/latest https://0x7f000001/x ftp://hooks.example/x hooks.example
    `),
  ]) {
    const { status, json } = await subscribe({ ...request, url })
    t.equal(status, 400, url)
    t.match(json, {
      message: 'Invalid input',
      errors: [
        { path: '.body.url', message: /^Events cannot be sent to this URL: ./, errorCode: 'webhook.url' },
      ],
      trace: null,
    })
    t.same(Object.keys(json), ['message', 'errors', 'trace'])
  }
  for (const topic of [station(0, 1).id, name, 'nothing', '__proto__']) {
    const { status, json } = await subscribe({ ...request, topic })
    t.equal(status, 404, topic)
    t.same(json, { message: 'Topic not found', trace: null })
  }
})

t.test('lists cost what an event of their size costs', async (t) => {
  const { hub, api } = await start(t, { HUB_PUBLISH_RATE: '1' })
  const { token: other } = await addUser(hub, api, own)
  for (const list of ['/topics', '/subscriptions']) {
    const { token } = await addUser(hub, api, own)
    const asked = Array.from({ length: 10 }, () => api.call('GET', list, { token }))
    const answers = await Promise.all(asked)
    const late = answers.filter(({ status }) => status === 429)
    t.ok(late.length > 0 && late.length < 9, `${list}: ${late.length} of 10 refused`)
    for (const { headers } of late) t.match(headers['retry-after'], /^[12]$/)
  }
  t.equal((await api.call('GET', '/subscriptions', { token: other })).status, 200, 'others are not concerned')
})

t.test('changes of subscriptions use up the publish rate', async (t) => {
  const { hub, api } = await start(t, { HUB_PUBLISH_RATE: '1' })
  const { token } = await addUser(hub, api, own)
  const asked = [
    ...Array.from({ length: 5 }, () => api.call('POST', '/subscriptions', { token, body: request })),
    ...Array.from({ length: 5 }, () => api.call('DELETE', '/subscriptions/unknown', { token })),
  ]
  const late = (await Promise.all(asked)).filter(({ status }) => status === 429)
  t.ok(late.length > 0 && late.length < 9, `${late.length} of 10 refused`)
  for (const { headers } of late) t.match(headers['retry-after'], /^[12]$/)
})

t.test('an institution has at most 50 subscriptions of a livestream', async (t) => {
  const { hub, api, token } = await start(t)
  const subscribe = async (as: string) => api.call('POST', '/subscriptions', { token: as, body: request })
  for (let count = 1; count <= 50; count++) t.equal((await subscribe(token)).status, 201, String(count))
  const { status, json } = await subscribe(token)
  t.equal(status, 400)
  const message =
    'The institution has too many subscriptions: expected at most 50 for one livestream, and 2000 in all'
  t.same(json.errors, [{ path: '.body', message, errorCode: 'subscription.limit' }])
  t.equal((await subscribe((await addUser(hub, api, foreign)).token)).status, 201)
})

t.test('private webhooks are for test installations that say so', async (t) => {
  const { api, token } = await start(t, { HUB_PUSH_ALLOW_PRIVATE: 'true' })
  const body = { ...request, url: 'https://localhost:9443/hook' }
  t.equal((await api.call('POST', '/subscriptions', { token, body })).status, 201)
})

t.test('plugin work is taken only from the hub itself', async (t) => {
  const { api, token } = await start(t)
  const body = { message: { data: '', messageId: '1' }, subscription: 'plugins' }
  const missing = await api.call('POST', '/pubsub', { body })
  t.equal(missing.status, 401)
  const { status, json } = await api.call('POST', '/pubsub', { token, body })
  t.equal(status, 403)
  t.match(json, { errors: [{ errorCode: 'authorization.invalid' }], trace: null })
})
