import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { readWeek, weekBeside, weekOf } from '../../../event/week.ts'
import {
  type OwnOperationName,
  ownOperationNames,
  ownOperations,
} from '../../../operations/institution/operations.ts'
import { type Api, addUser, openApi, password } from '../../bridge-https/api.ts'
import { connect, connectPublisher } from '../../clients.ts'
import { codeBlock, readPage } from '../../documentation.ts'
import { institutions, playing, serviceOf, station } from '../../events.ts'
import { pushing, startReceiver } from '../../receiver.ts'
import { startTestHub, temporaryDirectory } from '../../start-hub.ts'

/*
 * What an institution sees and changes of its own (open.md §7).
 */
const [own = '', other = ''] = institutions

/** Each name, text and URL of the other institution that must not be shown contains this word. */
const secret = 'geheim'

/** A hub with two institutions that have the same things. The names of the other one have the secret in them. */
async function startTwo(t: Test) {
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  receiver.behave(({ path }) => (path.includes('broken') ? 500 : 201))
  const hub = await startTestHub(t, pushing(receiver), join(home, 'hub'))
  const api = await openApi(t, hub)
  const make = async (institution: string, nth: number, name: string) => {
    const livestream = station(nth)
    const user = await addUser(hub, api, institution)
    const login = await hub.ask<{ username: string; password: string }>('credentials.add', {
      role: 'publisher',
      label: `${name}-studio`,
      institutions: [institution],
    })
    const studio = await connectPublisher(t, hub, login, institution)
    const published = await studio.publish(playing(livestream, { title: 'On air' }))
    await studio.publish(playing(livestream, { title: `${name} refused`, length: 0 }))
    await studio.publish(playing(livestream, { title: `${name}.mp3` }))
    const subscribe = async (topic: string, path: string) => {
      const body = { type: 'PUBSUB', method: 'PUSH', contact: `${name}@b.example`, topic }
      const url = receiver.url(`/${name}/${path}`)
      const { json } = await api.call('POST', '/subscriptions', { token: user.token, body: { ...body, url } })
      return String(json.name)
    }
    return { institution, livestream, user, username: login.username, studio, published, subscribe }
  }
  const mine = await make(own, 0, 'mine')
  const theirs = await make(other, 1, secret)
  const shared = await hub.ask<{ username: string }>('credentials.add', {
    role: 'publisher',
    label: 'shared',
    institutions: [own, other],
  })
  const get = (path: string, token = mine.user.token) => api.call('GET', `/institution${path}`, { token })
  const post = (path: string, body: object = {}, token = mine.user.token) =>
    api.call('POST', `/institution${path}`, { token, body })
  return { hub, api, receiver, mine, theirs, shared: shared.username, get, post }
}

t.test('livestreams: what each plays, who reads it, and ids and topics to copy', async (t) => {
  const { hub, mine, get } = await startTwo(t)
  const { livestream } = mine
  const reader = await hub.subscriber('radio/#')
  const all = await connect(t, hub, reader)
  await all.client.subscribeAsync('radio/#')
  const single = await connect(t, hub, reader)
  await single.client.subscribeAsync(`radio/${livestream.id}/#`)
  const { status, json } = await get('/livestreams')
  t.equal(status, 200)
  const list = json as unknown as Record<string, unknown>[]
  t.ok(list.length > 1 && list.every(({ livestreamId }) => livestreamId !== station(1).id))
  t.match(list[0], {
    livestreamId: livestream.id,
    title: livestream.title,
    state: 'on air',
    playing: { title: 'mine.mp3', artist: 'Mira Hollund' },
    silentSince: null,
    subscribers: 1,
    subscribersOfAll: 1,
    externalId: livestream.externalId,
    publisherId: livestream.publisher.id,
    publishTo: `inbox/${own}`,
    reportsOn: `feedback/${own}`,
    readOn: `radio/${livestream.id}/#`,
  })
  t.match(list.at(-1), { state: 'no event yet', playing: null })
  t.same((await get(`/livestreams/${livestream.id}`)).json, list[0])
  t.equal(((await get('/livestreams?limit=1')).json as unknown as unknown[]).length, 1)
  t.match(await get('/livestreams?limit=0'), {
    status: 400,
    json: { errors: [{ path: '.query.limit', errorCode: 'minimum.openapi.validation' }] },
  })
  t.match(await get('/livestreams?limit=x'), { status: 400, json: { errors: [{ path: '.query.limit' }] } })
})

t.test('livestreams that need a look are the first', async (t) => {
  const { mine, get } = await startTwo(t)
  const start = new Date(Date.now() - 3_600_000).toISOString()
  const stale = station(0, 3)
  // An offset may be hours alone.
  await mine.studio.publish(playing(stale, { start: start.replace('Z', '+00'), length: 60 }))
  const staleSince = new Date(Date.parse(start) + 60_000).toISOString()
  const list = (await get('/livestreams')).json as unknown as object[]
  t.match(list.slice(0, 3), [
    { livestreamId: stale.id, state: 'stale', staleSince },
    { livestreamId: mine.livestream.id, state: 'on air', staleSince: null },
    { state: 'no event yet' },
  ])
})

t.test('refusals and warnings, each with what mends it', async (t) => {
  const { mine, theirs, get } = await startTwo(t)
  const { json } = await get('/refusals')
  t.match(json, {
    events: [
      { title: 'mine.mp3', outcome: 'published', errors: [], warnings: [{ errorCode: 'title.file' }] },
      {
        title: 'mine refused',
        outcome: 'invalid',
        errors: [
          {
            path: '.length',
            errorCode: 'exclusiveMinimum.openapi.validation',
            remedy: 'send a number greater than 0 for length and cycle',
          },
        ],
      },
    ],
    next: null,
  })
  const [warned, refused] = json.events as { position: number; title: string }[]
  t.match((await get('/refusals?only=warned')).json, { events: [{ title: 'mine.mp3' }] })
  t.match((await get('/refusals?only=refused')).json, { events: [{ title: 'mine refused' }] })
  t.match(await get('/refusals?only=all'), { status: 400, json: { errors: [{ path: '.query.only' }] } })
  const paged = (await get('/refusals?limit=1')).json
  t.match(paged, { events: [{ position: warned?.position }], next: warned?.position })
  t.match((await get(`/refusals?limit=1&before=${paged.next}`)).json, {
    events: [{ position: refused?.position }],
  })
  const ofLivestream = (id: string) => get(`/refusals?livestream=${id}`)
  t.equal(((await ofLivestream(mine.livestream.id)).json.events as unknown[]).length, 2)
  t.match(await ofLivestream(theirs.livestream.id), { status: 404 })
  t.match((await get(`/events/${refused?.position}`)).json, {
    outcome: 'invalid',
    errors: [{ remedy: /^send a number/ }],
    refused: { text: /mine refused/ },
    receivers: { clients: null, webhooks: [], others: 0 },
  })
})

t.test('events of a week, also those that were published without a warning', async (t) => {
  const { mine, theirs, get } = await startTwo(t)
  const titles = async (query = '') =>
    ((await get(`/events${query}`)).json.events as { title: string }[]).map(({ title }) => title)
  const all = ['mine.mp3', 'mine refused', 'On air']
  t.same(await titles(), all)
  await mine.studio.publish(playing(station(0, 2), { title: 'Asked for', playlistItemId: 'item-7' }))
  t.same(await titles('?item=item-7'), ['Asked for'])
  t.same(await titles('?item=item-8'), [])
  t.same(await titles(`?livestream=${mine.livestream.id}`), all)
  t.match(await get(`/events?livestream=${theirs.livestream.id}`), { status: 404 })
  const { next } = (await get('/events?limit=1')).json
  t.same(await titles(`?before=${next}`), all)
  t.match(await get('/events?limit=201'), { status: 400, json: { errors: [{ path: '.query.limit' }] } })
  t.match(await get('/events?titel=x'), { status: 400, json: { errors: [{ path: '.query.titel' }] } })
})

t.test('the weekly report: its own sums, the same for its users and for operators', async (t) => {
  const { hub, mine, theirs, get } = await startTwo(t)
  const { studio, livestream } = mine
  const start = new Date(Date.now() - 60_000).toISOString()
  const next = { event: 'de.org.hub.v1.radio.track.next', title: 'Announced', playlistItemId: 'item-2' }
  await studio.publish(playing(livestream, next))
  await studio.publish(playing(livestream, { title: 'Announced', playlistItemId: 'item-2' }))
  await theirs.studio.publish(playing(theirs.livestream, { playlistItemId: 'item-2', start }))
  const { name: week } = weekOf(Date.now())
  const { status, json } = await get(`/report?week=${week}`)
  t.equal(status, 200)
  const { from, to } = readWeek(week) ?? {}
  t.match(json, {
    institutionId: own,
    week,
    from: new Date(Number(from)).toISOString(),
    to: new Date(Number(to)).toISOString(),
    isOver: false,
    events: 4,
    elements: 2,
    late: 0,
    music: 2,
    withoutIsrc: 2,
    withoutArtist: 0,
    withoutCover: 2,
    announced: 1,
    cameTrue: 1,
    gaps: 0,
    refused: 1,
    refusals: [
      {
        errorCode: 'exclusiveMinimum.openapi.validation',
        events: 1,
        remedy: /^send a number greater than 0/,
      },
    ],
  })
  const livestreams = json.livestreams as { livestreamId: string; events: number }[]
  t.match(
    livestreams.find(({ events }) => events > 0),
    { livestreamId: livestream.id, title: livestream.title, events: 4, silentSince: null, longestGaps: [] },
  )
  t.notMatch(JSON.stringify(json), theirs.livestream.id)
  t.same(await hub.ask('report.institution', { institution: own, week }), json)
  const last = await get('/report')
  t.match(last.json, { week: weekBeside(weekOf(Date.now()), -1).name, isOver: true, events: 0, refused: 0 })
  for (const [wrong, answer] of [
    ['2026-48', 400],
    ['2025-W53', 409],
    [weekBeside(weekOf(Date.now()), 1).name, 409],
    [weekBeside(weekOf(Date.now()), -13).name, 409],
  ] as const)
    t.match(await get(`/report?week=${wrong}`), { status: answer }, wrong)
  t.match(await get('/report?week=2026-48'), { json: { errors: [{ path: '.query.week' }] } })
  await t.rejects(hub.ask('report.institution', { institution: 'urn:org:institution:unknown' }), {
    message: /there is no institution/,
  })
})

t.test('the weekly report counts no dry run and no repetition, and over HTTPS as over MQTT', async (t) => {
  const { hub, api, mine, get } = await startTwo(t)
  const week = weekOf(Date.now()).name
  const sums = async () => {
    const { events, refused, elements } = (await get(`/report?week=${week}`)).json
    return { events, refused, elements }
  }
  t.same(await sums(), { events: 2, refused: 1, elements: 1 })
  const event = playing(mine.livestream, { playlistItemId: 'item-2' })
  await mine.studio.publish(event)
  await mine.studio.publish(event)
  t.same(await sums(), { events: 3, refused: 1, elements: 2 })
  const { event: name, ...body } = playing(mine.livestream, { playlistItemId: 'item-3' })
  const post = (fields: object) =>
    api.call('POST', `/events/${name}`, { token: mine.user.token, body: { ...body, ...fields } })
  t.match(await post({}), { status: 201 })
  t.match(await post({ length: 0 }), { status: 400 })
  t.same(await sums(), { events: 4, refused: 2, elements: 3 })
  await hub.close()
})

t.test('the receivers of an event: own webhooks by name, others as a number', async (t) => {
  const { hub, api, receiver, mine, theirs, get } = await startTwo(t)
  const name = await mine.subscribe(mine.livestream.id, 'hook')
  await theirs.subscribe(mine.livestream.id, 'hook')
  const { id } = await mine.studio.publish(playing(mine.livestream, { title: 'Delivered' }))
  await receiver.until(({ length }) => length === 2)
  const receivers = { webhooks: [{ queue: name, state: 'delivered' }], others: 1 }
  await hub.until(async () => {
    const { json } = await get(`/events/${id}`)
    return Object(json.receivers).webhooks?.[0]?.state === 'delivered'
  })
  const shown = await get(`/events/${id}`)
  t.match(shown.json, { receivers })
  const { text, json } = await api.call('GET', `/events/${id}`, { token: mine.user.token })
  t.match(json, { receivers })
  t.notMatch(text + shown.text, secret)
  const publisher = await addUser(hub, api, own, { permissions: ['publish'] })
  for (const path of [`/institution/events/${id}`, `/events/${id}`]) {
    const { json } = await api.call('GET', path, { token: publisher.token })
    t.match(json, { receivers: { webhooks: null, others: 1 } }, 'without subscribe, no webhooks')
  }
})

t.test('dry run: an event in words, and nothing happens', async (t) => {
  const { mine, theirs, get, post } = await startTwo(t)
  const before = (await get('/refusals')).json
  const good = playing(mine.livestream, { title: 'Tried' })
  t.match(await post('/check', { event: JSON.stringify(good) }), {
    status: 200,
    json: { outcome: 'published', errors: [], topics: [/track\/playing$/] },
  })
  t.match((await post('/check', { event: JSON.stringify({ ...good, length: 0 }) })).json, {
    outcome: 'invalid',
    errors: [{ path: '.length', remedy: /^send a number/ }],
  })
  t.match((await post('/check', { event: '{' })).json, { errors: [{ errorCode: 'payload.json' }] })
  t.match((await post('/check', { event: JSON.stringify(good), class: 'data' })).json, { outcome: 'blocked' })
  const foreign = playing(mine.livestream, { services: [serviceOf(theirs.livestream)] })
  t.match((await post('/check', { event: JSON.stringify(foreign) })).json, { outcome: 'blocked' })
  t.match(await post('/check'), { status: 400, json: { errors: [{ path: '.body.event' }] } })
  t.match(await post('/check', { event: 1 }), { status: 400, json: { errors: [{ path: '.body.event' }] } })
  t.match(await post('/check', { event: '', more: 1 }), { status: 400 })
  t.same((await get('/refusals')).json, before)
  t.match((await get(`/livestreams/${mine.livestream.id}`)).json, { playing: { title: 'mine.mp3' } })
})

t.test('credentials: those that publish here, and which may go', async (t) => {
  const { hub, mine, shared, get, post } = await startTwo(t)
  const unused = await hub.publisher([own])
  const list = async () => (await get('/credentials')).json as unknown as Record<string, unknown>[]
  const before = await list()
  t.equal(before.length, 3)
  const one = (username: string) => before.find((found) => found.username === username)
  t.match(one(mine.username), { connected: 1, isShared: false, mayGo: false, why: /connected/ })
  t.match(one(unused.username), { mayGo: false, lastUsedAt: null, why: /^nobody used it yet/ })
  t.match(one(shared), { connected: 0, isShared: true, mayGo: false, lastUsedAt: null })
  t.notMatch(JSON.stringify(before), other, 'the other institution of a shared credential is not named')
  t.match(await post(`/credentials/${shared}/revoke`), { status: 409, json: { message: /only an operator/ } })
  t.match(await post(`/credentials/${mine.username}/revoke`), { status: 200, json: { revoked: true } })
  t.equal((await list()).length, 2)
  const [entry] = (await hub.ask<object[]>('audit')).slice(-1)
  t.match(entry, { who: mine.user.email, action: 'credentials.revoke', target: mine.username })
  t.match(await post(`/credentials/${mine.username}/revoke`), { status: 404 })
})

t.test('a credential may go when a newer one of the institution alone is used in its place', async (t) => {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  const { username } = await hub.publisher([own])
  const shown = async () => {
    const { json } = await api.call('GET', '/institution/credentials', { token })
    return (json as unknown as { username: string }[]).find((one) => one.username === username)
  }
  await connectPublisher(t, hub, await hub.publisher([own, other]), other)
  t.match(
    await shown(),
    { mayGo: false, why: /^nobody used it yet/ },
    'another institution used the shared one',
  )
  const successor = await hub.publisher([own])
  await connectPublisher(t, hub, successor, own)
  t.match(await shown(), {
    mayGo: true,
    why: `${successor.username} was made after it, may do the same, and is used`,
  })
})

t.test('a webhook is tested, paused, resumed and replayed by its institution', async (t) => {
  const { hub, api, receiver, mine, get, post } = await startTwo(t)
  const name = await mine.subscribe(mine.livestream.id, 'hook')
  const path = `/subscriptions/${name}`
  const { token } = mine.user
  t.match((await get('/subscriptions')).json, [{ name, state: 'idle' }])
  t.match((await post(`${path}/test`)).json, { delivered: true })
  t.match(await post(`${path}/pause`), { status: 200, json: { paused: true } })
  t.match((await get(path)).json, {
    state: 'paused',
    paused: { by: mine.user.email, mayResume: true },
    attempts: [{ reason: null }],
    letters: [],
  })
  t.match(await post(`${path}/replay`), { status: 409, json: { message: /Resume it first/ } })
  t.match((await api.call('GET', path, { token })).json, { reason: 'paused by the institution' })
  t.match((await api.call('PUT', '/pubsub', { token, body: { subscription: name } })).json, {
    message: 'The subscription is paused by the institution',
  })
  t.match(await post(`${path}/resume`), { status: 200, json: { resumed: true } })
  await hub.ask('subscriptions.pause', { name })
  t.match((await api.call('GET', path, { token })).json, { reason: 'paused by the operator' })
  t.match((await get(path)).json, { paused: { by: 'an operator of the hub', mayResume: false } })
  const refused = await post(`${path}/resume`)
  t.match(refused, { status: 409, json: { message: /only an operator resumes it/ } })
  t.match(await post(`${path}/pause`), {
    status: 409,
    json: { message: /^an operator of the hub paused it/ },
  })
  await hub.ask('subscriptions.resume', { name })
  const since = new Date(Date.now() - 3_600_000).toISOString()
  t.match(await post(`${path}/replay`, { since }), { status: 200, json: { replayed: 2 } })
  await receiver.until(({ length }) => length === 3)
  t.match(await post(`${path}/replay`, { since: 'yesterday' }), {
    status: 400,
    json: { errors: [{ path: '.body.since' }] },
  })
})

t.test('no operation shows or changes anything of another institution', async (t) => {
  const { hub, api, receiver, mine, theirs } = await startTwo(t)
  const hook = await theirs.subscribe(theirs.livestream.id, 'broken')
  await theirs.subscribe(mine.livestream.id, 'hook')
  const { id } = await theirs.studio.publish(playing(theirs.livestream, { title: 'Delivered' }))
  await receiver.until((pushes) => pushes.some(({ path }) => path.includes('broken')))
  await hub.ask('subscriptions.pause', { name: hook })
  const { events } = await hub.ask<{ events: { position: number }[] }>('events.list', { institution: other })
  const foreign = [
    theirs.livestream.id,
    theirs.livestream.externalId,
    String(id),
    ...events.map(({ position }) => String(position)),
    // Messages lie directly before their reports.
    ...events.map(({ position }) => String(position - 1)),
    theirs.username,
    hook,
    other,
  ]
  const all = ['credentials.list', 'subscriptions.list', 'audit', 'clients.list'] as const
  const stateOf = async () => JSON.stringify(await Promise.all(all.map((command) => hub.ask(command))))
  const before = await stateOf()
  for (const name of ownOperationNames) {
    for (const args of argumentsOf(name, foreign)) {
      const answer = await ask(api, name, args, mine.user.token)
      const asked = `${name} ${JSON.stringify(args)}`
      t.notMatch(withoutArguments(answer.text, args), secret, asked)
      // A position may be the last one before an own report, which has its message there.
      if (Object.keys(args).join() === 'item')
        t.same(JSON.parse(answer.text), { events: [], next: null }, asked)
      else if (Object.keys(args).length > 0 && name !== 'check')
        t.ok([400, 404].includes(answer.status), asked)
    }
  }
  t.equal(await stateOf(), before, 'nothing was changed')
})

t.test('what does not exist and what belongs to others is refused in the same words', async (t) => {
  const { api, mine, theirs } = await startTwo(t)
  const hook = await theirs.subscribe(theirs.livestream.id, 'hook')
  const unknown = 'urn:org:permanent-livestream:0000000000000000'
  for (const name of ownOperationNames) {
    for (const [nth, foreign] of [theirs.livestream.id, theirs.username, hook].entries()) {
      for (const args of argumentsOf(name, [foreign])) {
        if (Object.keys(args).length === 0 || name === 'check') continue
        const madeUp = Object.fromEntries(Object.keys(args).map((argument) => [argument, unknown]))
        const [real, made] = [
          await ask(api, name, args, mine.user.token),
          await ask(api, name, madeUp, mine.user.token),
        ]
        t.equal(real.text.replaceAll(foreign, '*'), made.text.replaceAll(unknown, '*'), `${name} ${nth}`)
      }
    }
  }
})

t.test('each operation needs its permission', async (t) => {
  const { hub, api } = await startTwo(t)
  for (const permission of ['publish', 'subscribe', 'operate']) {
    const { token } = await addUser(hub, api, own, { permissions: [permission] })
    for (const name of ownOperationNames) {
      const { status } = await ask(api, name, exampleOf(name), token)
      const isAllowed = ownOperations[name].permission === permission
      t.equal(status === 403, !isAllowed, `${name} for ${permission}: ${status}`)
    }
  }
  for (const name of ownOperationNames) t.match(await ask(api, name, exampleOf(name)), { status: 401 }, name)
})

t.test('the page for institutions has every route, and its script works', async (t) => {
  const page = readPage('institutions.md')
  for (const name of ownOperationNames) t.ok(page.includes(`\`${ownOperations[name].at}\``), name)
  const { hub, mine } = await startTwo(t)
  await mine.studio.publish(playing(mine.livestream, { title: '\u001b[2Jred', length: 0 }))
  const script = codeBlock(page, 'bash', '/institution/refusals').replace(':8443', `:${hub.httpsPort}`)
  const env = { HOST: 'localhost', CA: hub.caPath, EMAIL: mine.user.email, PASSWORD: password }
  const run = promisify(execFile)
  const { stdout } = await run('bash', ['-c', script], { env: { PATH: process.env.PATH, ...env } })
  t.match(stdout, /"mine refused" \.length The number is too small: .* → send a number greater than 0/)
  t.match(stdout, /"\\u001b\[2Jred" \.length/)
  t.notMatch(stdout, /(?!\n)\p{Cc}/u, 'nothing that a terminal acts upon')
})

/** The arguments with which an operation could be asked for these ids: each argument in turn, and none. */
function argumentsOf(name: OwnOperationName, ids: readonly string[]): Record<string, unknown>[] {
  const { args } = ownOperations[name]
  const texts = Object.entries<unknown>({ ...args.properties }).filter(
    ([, schema]) => Object(schema).type === 'string' && !Object(schema).enum,
  )
  const required: readonly string[] = args.required ?? []
  const each = texts.flatMap(([argument]) =>
    ids.map((id) => ({ ...Object.fromEntries(required.map((one) => [one, id])), [argument]: id })),
  )
  return required.length === 0 ? [{}, ...each] : each
}

function ask(api: Api, name: OwnOperationName, args: Record<string, unknown>, token?: string) {
  const [method = '', at = ''] = ownOperations[name].at.split(' ')
  const rest = { ...args }
  const path = at.replace(/\{(\w+)\}/g, (_, argument: string) => {
    delete rest[argument]
    return encodeURIComponent(String(args[argument]))
  })
  if (method === 'POST') return api.call('POST', path, { token, body: rest })
  const query = new URLSearchParams(
    Object.entries(rest).map(([key, value]): [string, string] => [key, String(value)]),
  )
  return api.call('GET', `${path}?${query}`, { token })
}

function exampleOf(name: OwnOperationName): Record<string, unknown> {
  const [example] = Object(ownOperations[name].args).examples
  return { ...example }
}

/** The answer without what was asked. */
function withoutArguments(text: string, args: Record<string, unknown>): string {
  return Object.values(args).reduce<string>((rest, value) => rest.replaceAll(String(value), ''), text)
}
