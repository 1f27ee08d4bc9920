import t, { type Test } from 'tap'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { connectPublisher } from '../../clients.ts'
import { openStream, type StreamReader } from '../../event-stream.ts'
import { control, data, institutions, playing, serviceOf, station } from '../../events.ts'
import { type Issued, startTestHub, type TestHub } from '../../start-hub.ts'
import { onEachStore } from '../../stores.ts'

const livestream = station(0, 0)
const other = station(0, 1)
const institution = livestream.institution.id
const stream = `/livestreams/${livestream.id}/stream`

onEachStore('a stream begins with the state, and goes on with each event', async (t, store, driver) => {
  const hub = await startTestHub(t, store)
  const away = driver === 'redis' ? await startTestHub(t, store) : hub
  const { publish, open, get } = await openStation(t, hub, away)
  await publish(playing(livestream, { title: 'before' }))
  await publish(control(livestream, { name: 'on' }))
  await publish(control(livestream, { name: 'off', state: false }))
  await publish(playing(other, { title: 'elsewhere' }))
  await away.until(async () => (await get('/now')).text.includes('elsewhere'))
  const now = JSON.parse((await get(`/livestreams/${livestream.id}/now`)).text)
  const reader = await open(stream)
  await reader.until(() => isReady(reader))
  t.match(reader, {
    status: 200,
    headers: {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
      'access-control-allow-origin': '*',
    },
  })
  t.ok(reader.retry() >= 1_000 && reader.retry() <= 5_000)
  t.same(
    reader.events.map(({ event, id, data }) => [event, id, data.retained, data.event]),
    [
      ['playing', undefined, true, now.playing],
      ['control', undefined, true, now.controls[0]],
      ['ready', reader.lastId(), undefined, undefined],
    ],
  )

  await publish(playing(livestream, { title: 'live' }))
  await publish(playing(other, { title: 'not asked for' }))
  await publish(data(livestream))
  await reader.until(() => reader.named('data').length > 0)
  const [title, text] = reader.events.slice(3)
  t.match(title, {
    event: 'playing',
    data: { livestreamId: livestream.id, retained: false, event: { title: 'live' } },
  })
  t.match(text, { event: 'data', data: { livestreamId: livestream.id, retained: false } })
  const history = JSON.parse((await get(`/livestreams/${livestream.id}/events?limit=2`)).text)
  t.same(
    [text?.id, title?.id],
    history.events.map(({ position }: { position: number }) => String(position)),
    'ids are positions',
  )
})

onEachStore('who comes back gets what it missed, as returning sessions do', async (t, store) => {
  const hub = await startTestHub(t, store)
  const { publish, open } = await openStation(t, hub)
  await publish(playing(livestream, { title: 'seen' }))
  const reader = await open(stream)
  await reader.until(() => isReady(reader))
  const last = reader.lastId()
  reader.close()
  await publish(playing(livestream, { title: 'passed by' }))
  await publish(control(livestream, { name: 'a' }))
  await publish(playing(other, { title: 'elsewhere' }))
  await publish(control(livestream, { name: 'a', state: false }))
  await publish(playing(livestream, { title: 'newest' }))
  for (const [path, headers] of [
    [stream, { 'last-event-id': String(last) }],
    [`${stream}?lastEventId=${last}`, {}],
  ] as const) {
    const back = await open(path, headers)
    await back.until(() => isReady(back))
    t.match(
      back.events.map(({ event, data }) => [event, data.event?.title ?? data.event?.state]),
      [
        ['control', true],
        ['control', false],
        ['playing', 'newest'],
        ['ready', undefined],
      ],
    )
    t.notOk(back.events.some(({ data }) => data.retained))
    const ids = back.events.map(({ id }) => Number(id))
    t.same(
      ids,
      [...ids].sort((a, b) => a - b),
      'in order',
    )
  }
})

t.test('who names a place that cannot be reached is told, and gets the state', async (t) => {
  const hub = await startTestHub(t)
  const { publish, open } = await openStation(t, hub)
  await publish(playing(livestream, { title: 'state' }))
  for (const id of ['x', '-1', '1e3', '99999999', '9'.repeat(30)]) {
    const reader = await open(stream, { 'last-event-id': id })
    await reader.until(() => isReady(reader))
    t.match(
      reader.events.map(({ event, data }) => [event, data.retained]),
      [
        ['missed', undefined],
        ['playing', true],
        ['ready', undefined],
      ],
      id,
    )
  }
})

t.test('one stream has several livestreams, or all', async (t) => {
  const hub = await startTestHub(t)
  const { publish, open } = await openStation(t, hub)
  const both = await open(`/stream?livestream=${livestream.id}&livestream=${other.id}`)
  const all = await open('/stream')
  for (const reader of [both, all]) await reader.until(() => isReady(reader))
  await publish(playing(livestream, { services: [serviceOf(livestream), serviceOf(other)] }))
  const third = station(0, 2)
  await publish(playing(third, { title: 'third' }))
  await publish(playing(livestream, { title: 'end' }))
  const titles = (reader: StreamReader) =>
    reader.named('playing').map(({ data }) => `${data.livestreamId} ${data.event?.title}`)
  for (const reader of [both, all]) await reader.until(() => titles(reader).at(-1)?.endsWith('end') === true)
  const shared = [`${livestream.id} Morgenlicht`, `${other.id} Morgenlicht`]
  t.same(titles(both), [...shared, `${livestream.id} end`])
  t.same(titles(all), [...shared, `${third.id} third`, `${livestream.id} end`])
})

t.test('a title that is ahead goes out at once', async (t) => {
  const hub = await startTestHub(t)
  const { publish, open } = await openStation(t, hub)
  await publish(playing(livestream, { title: 'now', start: new Date(Date.now() - 60_000).toISOString() }))
  const live = await open(stream)
  await live.until(() => isReady(live))
  await publish(playing(livestream, { title: 'ahead', start: new Date(Date.now() + 60_000).toISOString() }))
  await live.until(() => live.named('playing').length === 2)
  const late = await open(stream)
  await late.until(() => isReady(late))
  t.same(
    late.named('playing').map(({ data }) => data.event?.title),
    ['now', 'ahead'],
    'also to who comes later, behind the state',
  )
})

t.test('a delayed stream tells all so much later, and in the same order', async (t) => {
  const hub = await startTestHub(t)
  const { publish, open } = await openStation(t, hub)
  const reader = await open(`${stream}?delay=1`)
  await reader.until(() => isReady(reader))
  const published: number[] = []
  for (let nth = 0; nth < 5; nth++) {
    published.push(Date.now())
    await publish(playing(livestream, { title: `${nth}` }))
  }
  const arrived: number[] = []
  for (let nth = 0; nth < 5; nth++) {
    await reader.until(() => reader.named('playing').length > nth)
    arrived.push(Date.now())
  }
  t.same(
    reader.named('playing').map(({ data }) => data.event?.title),
    ['0', '1', '2', '3', '4'],
  )
  t.ok(arrived.every((at, nth) => at - (published[nth] ?? 0) > 950))
})

t.test('who comes back to a delayed stream gets all control states that it missed', async (t) => {
  const hub = await startTestHub(t)
  const { publish, open } = await openStation(t, hub)
  const path = `${stream}?delay=1`
  const reader = await open(path)
  await reader.until(() => isReady(reader))
  reader.close()
  for (const state of [true, false, true]) await publish(control(livestream, { name: 'a', state }))
  const witness = await open(path)
  await witness.until(() => witness.named('control').length === 3)
  // The newest state of all lies ahead of the reader.
  await publish(control(livestream, { name: 'a', state: false }))
  const back = await open(path, { 'last-event-id': String(reader.lastId()) })
  await back.until(() => back.named('control').length === 4)
  t.same(
    back.named('control').map(({ data }) => data.event?.state),
    [true, false, true, false],
  )
})

t.test(
  'who comes back to a delayed stream gets a control state that has ended since, but not there',
  async (t) => {
    const hub = await startTestHub(t)
    const { publish, open } = await openStation(t, hub)
    const path = `${stream}?delay=4`
    const reader = await open(path)
    await reader.until(() => isReady(reader))
    reader.close()
    await publish(control(livestream, { name: 'a', validUntil: new Date(Date.now() + 3_000).toISOString() }))
    const witness = await open(path)
    await witness.until(() => witness.named('control').length === 1)
    const back = await open(path, { 'last-event-id': String(reader.lastId()) })
    await back.until(() => isReady(back))
    t.equal(back.named('control').length, 1)
  },
)

t.test('without a history of livestreams, a stream begins and goes on like any other', async (t) => {
  const hub = await startTestHub(t, { HUB_HISTORY: '0' })
  const { publish, open } = await openStation(t, hub)
  await publish(playing(livestream, { title: 'seen' }))
  const reader = await open(stream)
  await reader.until(() => isReady(reader))
  reader.close()
  await publish(playing(livestream, { title: 'passed by' }))
  await publish(playing(livestream, { title: 'newest' }))
  const back = await open(stream, { 'last-event-id': String(reader.lastId()) })
  await back.until(() => isReady(back))
  await publish(playing(livestream, { title: 'live' }))
  await back.until(() => isTold(back, 'live'))
  t.same(
    back.events.map(({ event, data }) => data.event?.title ?? event),
    ['newest', 'ready', 'live'],
  )
})

t.test('a livestream that is named twice comes once', async (t) => {
  const hub = await startTestHub(t)
  const { publish, open } = await openStation(t, hub)
  await publish(playing(livestream, { title: 'state' }))
  const reader = await open(`/stream?livestream=${livestream.id}&livestream=${livestream.id}`)
  await reader.until(() => isReady(reader))
  await publish(playing(livestream, { title: 'live' }))
  await reader.until(() => isTold(reader, 'live'))
  t.same(
    reader.named('playing').map(({ data }) => data.event?.title),
    ['state', 'live'],
  )
})

t.test('strangers read what a public page shows, no further back than five minutes', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLIC_PAGE: 'true' })
  const { publish, open } = await openStation(t, hub)
  await publish(playing(livestream))
  const stranger = await openStream(t, hub, stream)
  await stranger.until(() => isReady(stranger))
  t.equal(stranger.named('playing').length, 1)
  const back = await openStream(t, hub, `${stream}?lastEventId=0`)
  await back.until(() => isReady(back))
  t.equal(back.named('missed').length, 0, 'the journal began less than five minutes ago')
  const known = await open(`${stream}?lastEventId=0`)
  await known.until(() => isReady(known))
  t.equal(known.named('missed').length, 0)
})

t.test('a stream ends when its user may not read any more', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLIC_PAGE: 'false' })
  const api = await openApi(t, hub)
  const gone = await addUser(hub, api, institution, { permissions: ['subscribe'] })
  const out = await addUser(hub, api, institution, { permissions: ['subscribe'] })
  const stays = await addUser(hub, api, institutions[1] ?? '', { permissions: ['subscribe'] })
  const [first, second, third] = await Promise.all(
    [gone, out, stays].map(({ token }) => openStream(t, hub, '/stream', { token })),
  )
  for (const reader of [first, second, third]) await reader?.until(() => isReady(reader))
  await hub.ask('users.remove', { email: gone.email })
  await first?.until(() => first.hasEnded())
  t.notOk(second?.hasEnded())
  const { resetToken } = await hub.ask<{ resetToken: string }>('users.reset-password', { email: out.email })
  await api.call('POST', '/auth/reset', { body: { token: resetToken, password: 'another horse battery' } })
  await second?.until(() => second.hasEnded())
  t.notOk(third?.hasEnded())
})

onEachStore('a reader sees what its filters allow, until it is revoked', async (t, store, driver) => {
  const hub = await startTestHub(t, { ...store, HUB_PUBLIC_PAGE: 'false' })
  const away = driver === 'redis' ? await startTestHub(t, store) : hub
  const { publish, get } = await openStation(t, hub, away)
  const api = await openApi(t, away)
  const { username, password } = await hub.ask<Issued>('credentials.add', {
    role: 'reader',
    label: 'app',
    filters: [`radio/${livestream.id}/track/#`],
  })
  const headers = { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` }
  const ask = (path: string) => api.call('GET', path, { headers })
  await publish(playing(livestream))
  await publish(data(livestream))
  await away.until(async () => (await get(`/livestreams/${livestream.id}/now`)).json.data !== null)
  const now = await ask(`/livestreams/${livestream.id}/now`)
  t.match(now, { status: 200, json: { playing: { title: 'Morgenlicht' }, next: null } })
  t.notOk('data' in now.json || 'controls' in now.json, 'parts outside are absent')
  t.equal(now.headers['cache-control'], 'private, max-age=1')
  t.equal((await ask(`/livestreams/${other.id}/now`)).status, 404)
  t.equal((await ask(`/stream?livestream=${other.id}`)).status, 404)
  t.same(
    JSON.parse((await ask('/now')).text).map(({ id }: { id: string }) => id),
    [livestream.id],
  )
  const time = new Date().toISOString()
  t.match((await ask(`/livestreams/${livestream.id}/at/${time}`)).json, { playing: { title: 'Morgenlicht' } })

  const reader = await openStream(t, away, '/stream', { headers })
  await reader.until(() => isReady(reader))
  await publish(data(livestream))
  await publish(playing(other))
  await publish(playing(livestream, { title: 'allowed' }))
  await reader.until(() => reader.events.length === 3)
  t.same(
    reader.events.map(({ event }) => event),
    ['playing', 'ready', 'playing'],
  )
  await hub.ask('credentials.revoke', { username })
  await reader.until(() => reader.hasEnded())
  t.equal((await ask('/now')).status, 403)
})

t.test('a node that stops says so', async (t) => {
  const hub = await startTestHub(t)
  const { open } = await openStation(t, hub)
  const reader = await open('/stream')
  await reader.until(() => isReady(reader))
  await Promise.all([hub.close(), reader.until(() => reader.hasEnded())])
  t.match(reader.events.at(-1), { event: 'bye' })
})

t.test('who finds no room is sent away for a while, with a status that readers understand', async (t) => {
  const hub = await startTestHub(t, { HUB_MAX_STREAMS: '1' })
  const { open } = await openStation(t, hub)
  const first = await open(stream)
  await first.until(() => isReady(first))
  const second = await open(stream)
  await second.until(() => second.hasEnded())
  t.equal(second.status, 200)
  t.equal(second.retry(), 30_000)
  t.match(second.events, [{ event: 'bye' }])
  first.close()
  await hub.until(async () => {
    const third = await open(stream)
    await third.until(() => third.events.length > 0)
    return isReady(third)
  })
})

t.test('a reader that does not read is ended, and nobody waits for it', async (t) => {
  const hub = await startTestHub(t, { HUB_OUTGOING_BUFFER: '65536', HUB_PUBLISH_RATE: '0' })
  const { publish, open } = await openStation(t, hub)
  const slow = await open(stream)
  const healthy = await open(stream)
  for (const reader of [slow, healthy]) await reader.until(() => isReady(reader))
  slow.pause()
  const ended = async () => {
    const { counters } = await hub.ask<{ counters: Record<string, number> }>('status')
    return counters['hub_streams_ended_total{reason=slow}'] === 1
  }
  let count = 0
  while (!(await ended())) {
    count++
    await publish(playing(livestream, { title: `${count}`, artist: 'x'.repeat(100_000) }))
  }
  await healthy.until(() => healthy.named('playing').length === count)
  t.ok(count > 1)
})

t.test('HEAD has the headers of a stream and no body', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLIC_PAGE: 'true' })
  const api = await openApi(t, hub)
  const answer = await api.raw('HEAD', stream)
  t.match(answer, { status: 200, text: '', headers: { 'content-type': 'text/event-stream; charset=utf-8' } })
})

function isTold(reader: StreamReader, title: string): boolean {
  return reader.named('playing').some(({ data }) => data.event?.title === title)
}

function isReady(reader: StreamReader | undefined): boolean {
  return reader?.events.at(-1)?.event === 'ready'
}

/** A publisher of the institution on `hub`, and a user who reads on `away`. */
async function openStation(t: Test, hub: TestHub, away = hub) {
  const api = await openApi(t, away)
  const { token } = await addUser(away, api, institution, { permissions: ['subscribe'] })
  const studio = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  return {
    publish: studio.publish,
    get: (path: string) => api.call('GET', path, { token }),
    open: (path: string, headers: Record<string, string> = {}) =>
      openStream(t, away, path, { token, headers }),
  }
}
