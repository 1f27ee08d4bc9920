import t, { type Test } from 'tap'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { connectPublisher } from '../../clients.ts'
import { control, data, playing, serviceOf, station } from '../../events.ts'
import { startTestHub, type TestHub } from '../../start-hub.ts'
import { onEachStore } from '../../stores.ts'

const livestream = station(0, 0)
const other = station(0, 1)
const institution = livestream.institution.id
const now = `/livestreams/${livestream.id}/now`

onEachStore('a livestream shows the newest event of each kind, by event time', async (t, store) => {
  const hub = await startTestHub(t, { ...store, HUB_PUBLIC_PAGE: 'false' })
  const { get, publish } = await openStation(t, hub)
  t.match((await get(now)).json, {
    id: livestream.id,
    title: livestream.title,
    institution: { id: institution, title: livestream.institution.title },
    playing: null,
    next: null,
    controls: [],
    data: null,
    at: null,
    position: null,
    stale: false,
  })

  await publish(playing(livestream, { title: 'newest', start: ago(60) }))
  await publish(playing(livestream, { title: 'older', start: ago(120) }))
  await publish(next({ title: 'to come', start: ahead(120), playlistItemId: 'item-2' }))
  await publish(control(livestream, { name: 'traffic' }))
  await publish(control(livestream, { name: 'news' }))
  await publish(control(livestream, { name: 'off', state: false }))
  await publish(data(livestream, { text: 'radiotext' }))
  const { json } = await get(now)
  t.match(json, { playing: { title: 'newest' }, next: { title: 'to come' }, data: { text: 'radiotext' } })
  t.same(json.controls.map(({ name }: { name: string }) => name).sort(), ['news', 'traffic'])
  const { json: history } = await get(`/livestreams/${livestream.id}/events`)
  const [last] = history.events
  t.match(json, { at: last.acceptedAt, position: last.position })

  await publish(control(livestream, { name: 'traffic', state: false }))
  t.match((await get(now)).json, { controls: [{ name: 'news' }] })
  t.equal((await get(now)).json.controls.length, 1)

  await publish(playing(livestream, { title: 'has come', start: ago(1), playlistItemId: 'item-2' }))
  t.match((await get(now)).json, { playing: { title: 'has come' }, next: null }, 'it plays')
  await publish(next({ title: 'was passed over', start: ago(30) }))
  t.equal((await get(now)).json.next, null, 'it is older than what plays')
})

t.test('an event whose start is ahead is shown from then on', async (t) => {
  const hub = await startTestHub(t)
  const { get, publish } = await openStation(t, hub)
  await publish(playing(livestream, { title: 'before', start: ago(60) }))
  const start = ahead(2)
  await publish(playing(livestream, { title: 'from then on', start }))
  const early = await get(now)
  // The test may be slow: what counts is the clock at the answer.
  if (Date.now() < Date.parse(start)) t.match(early.json, { playing: { title: 'before' } })
  await hub.until(async () => (await get(now)).json.playing.title === 'from then on')
  t.ok(Date.now() >= Date.parse(start))
})

t.test('a control state is shown until its end', async (t) => {
  const hub = await startTestHub(t)
  const { get, publish } = await openStation(t, hub)
  const validUntil = ahead(2)
  await publish(control(livestream, { validUntil }))
  const early = await get(now)
  if (Date.now() < Date.parse(validUntil)) t.equal(early.json.controls.length, 1)
  await hub.until(async () => (await get(now)).json.controls.length === 0)
  t.ok(Date.now() >= Date.parse(validUntil))
})

t.test('what should have ended more than ten minutes ago is stale', async (t) => {
  const hub = await startTestHub(t)
  const { get, publish } = await openStation(t, hub)
  await publish(playing(livestream, { start: ahead(-700), length: 180 }))
  t.equal((await get(now)).json.stale, false)
  await publish(playing(livestream, { start: ahead(-699), length: 60 }))
  t.equal((await get(now)).json.stale, true)
})

onEachStore(
  'the tag of an answer is the same on all nodes, and changes with the answer',
  async (t, store, driver) => {
    const hub = await startTestHub(t, store)
    const second = driver === 'redis' ? await startTestHub(t, store) : hub
    const { get, publish, token } = await openStation(t, hub)
    const api = await openApi(t, second)
    await publish(playing(livestream, { title: 'one' }))
    const first = await get(now)
    const tag = String(first.headers.etag)
    t.match(tag, /^"[^"]+"$/, 'strong')
    await hub.until(async () => (await api.call('GET', now, { token })).headers.etag === tag)
    t.match(await get(now, { 'if-none-match': tag }), { status: 304, text: '', headers: { etag: tag } })
    await publish(playing(livestream, { title: 'two' }))
    const changed = await get(now, { 'if-none-match': tag })
    t.match(changed, { status: 200, json: { playing: { title: 'two' } } })
    t.not(changed.headers.etag, tag)
  },
)

t.test('caches may keep what everybody may see', async (t) => {
  for (const [isPublic, expected] of [
    ['true', 'public, max-age=1'],
    ['false', 'private, max-age=1'],
  ] as const) {
    const hub = await startTestHub(t, { HUB_PUBLIC_PAGE: isPublic })
    const { get } = await openStation(t, hub)
    t.equal((await get(now)).headers['cache-control'], expected)
    t.equal((await get('/now')).headers['cache-control'], expected)
  }
})

t.test('several livestreams are asked for together', async (t) => {
  const hub = await startTestHub(t)
  const { get, publish } = await openStation(t, hub)
  await publish(playing(livestream, { services: [serviceOf(livestream), serviceOf(other)] }))
  const { json } = await get(`/now?livestream=${livestream.id}&livestream=${other.id}`)
  t.match(json, [
    { id: livestream.id, playing: { title: 'Morgenlicht' } },
    { id: other.id, playing: { title: 'Morgenlicht' } },
  ])
  const one = await get(now)
  t.same(json[0], one.json, 'each as it shows alone')
  const all = await get('/now')
  t.ok(all.json.length > 2, 'also those of others')
  const page = await get(`/now?after=${all.json[1].id}`)
  t.same(page.json, all.json.slice(2))
})

t.test('a delayed view shows what the present was then', async (t) => {
  const hub = await startTestHub(t)
  const { get, publish } = await openStation(t, hub)
  await publish(playing(livestream, { title: 'first', start: ago(60) }))
  const delayed = () => get(`${now}?delay=1`)
  await hub.until(async () => (await delayed()).json.playing?.title === 'first')
  const published = Date.now()
  await publish(playing(livestream, { title: 'second' }))
  t.equal((await get(now)).json.playing.title, 'second')
  const seen = await delayed()
  if (Date.now() - published < 900) t.equal(seen.json.playing.title, 'first')
  await hub.until(async () => (await delayed()).json.playing.title === 'second')
  t.ok(Date.now() - published >= 950)
})

t.test('what is wrong with a question is named', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLIC_PAGE: 'true' })
  const { get } = await openStation(t, hub)
  const strange = await openApi(t, hub)
  const many = Array.from({ length: 201 }, (_, nth) => `livestream=urn:org:livestream:${nth}`).join('&')
  for (const [path, status, errorPath] of [
    ['/livestreams/urn:org:livestream:none/now', 404, undefined],
    ['/now?livestream=urn:org:livestream:none', 404, undefined],
    [`/now?${many}`, 400, '.query.livestream'],
    [`${now}?delay=301`, 400, '.query.delay'],
    [`${now}?delay=1.5`, 400, '.query.delay'],
    [`${now}?delay=-1`, 400, '.query.delay'],
    [`${now}?dely=1`, 400, '.query.dely'],
    [`/livestreams/${livestream.id}/at/yesterday`, 400, '.params.time'],
    [`/livestreams/${livestream.id}/at/${ahead(60)}`, 400, '.params.time'],
    [`/livestreams/${livestream.id}/at/${ago(60)}`, 404, undefined],
    [`/livestreams/${livestream.id}/stream?delay=x`, 400, '.query.delay'],
    ['/livestreams/urn:org:livestream:none/stream', 404, undefined],
    [`/stream?${many}`, 400, '.query.livestream'],
  ] as const) {
    const answer = await get(path)
    t.equal(answer.status, status, path)
    if (errorPath) t.match(answer.json, { errors: [{ path: errorPath }] }, path)
  }
  const yesterday = await get(`/livestreams/${livestream.id}/at/yesterday`)
  t.match(yesterday.json, { errors: [{ message: /"yesterday", expected an ISO 8601 instant/ }] })
  t.match(await strange.call('GET', now), { status: 200 }, 'strangers see the present')
  const past = await strange.call('GET', `/livestreams/${livestream.id}/at/${ago(60)}`)
  t.match(past, { status: 401 }, 'and nothing of the past')
})

t.test('without a public page, nobody reads without a right', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLIC_PAGE: 'false' })
  const api = await openApi(t, hub)
  const publisher = await addUser(hub, api, institution, { permissions: ['publish'] })
  for (const path of [now, '/now', '/stream', `/livestreams/${livestream.id}/stream`]) {
    t.equal((await api.call('GET', path)).status, 401, path)
    t.equal((await api.call('GET', path, { token: 'x' })).status, 403, path)
    t.equal((await api.call('GET', path, { token: publisher.token })).status, 403, path)
  }
})

onEachStore('the past is found by event time', async (t, store) => {
  const hub = await startTestHub(t, store)
  const { get, publish } = await openStation(t, hub)
  const at = (seconds: number) => get(`/livestreams/${livestream.id}/at/${ago(seconds)}`)
  await publish(playing(livestream, { title: 'second', start: ago(200) }))
  await publish(playing(livestream, { title: 'third', start: ago(100) }))
  await publish(playing(livestream, { title: 'first, told late', start: ago(300) }))
  await publish(playing(livestream, { title: 'second, corrected', start: ago(200) }))
  t.match((await at(150)).json, {
    before: { title: 'first, told late' },
    playing: { title: 'second, corrected' },
    after: { title: 'third' },
  })
  t.match((await at(1)).json, { playing: { title: 'third' }, after: null })
  t.match((await at(250)).json, { before: null, playing: { title: 'first, told late' } })
  t.match(await at(400), { status: 404, json: { message: /journal does not reach/ } })
  const { username, password } = await hub.reader('radio/+/control')
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
  const strange = await openApi(t, hub)
  const path = `/livestreams/${livestream.id}/at/${ago(150)}`
  const unread = await strange.call('GET', path, { headers: { authorization } })
  t.equal(unread.status, 404)
  t.match(unread.text, /without radio\/.*\/track\/playing/, 'a reader of other topics is told so')
})

/** A publisher of the institution, and a user who reads. */
async function openStation(t: Test, hub: TestHub) {
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, institution, { permissions: ['subscribe'] })
  const studio = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  return {
    token,
    publish: studio.publish,
    async get(path: string, headers: Record<string, string> = {}) {
      const answer = await api.call('GET', path, { token, headers })
      return { ...answer, json: answer.text === '' ? undefined : JSON.parse(answer.text) }
    },
  }
}

let began: number | undefined

/** Seconds before the first call: times of a test must not move. */
function ago(seconds: number): string {
  began ??= Date.now()
  return new Date(began - seconds * 1000).toISOString()
}

function ahead(seconds: number): string {
  return new Date(Date.now() + seconds * 1000).toISOString()
}

function next(fields: Record<string, unknown>): Record<string, unknown> {
  return playing(livestream, { event: 'de.org.hub.v1.radio.track.next', ...fields })
}
