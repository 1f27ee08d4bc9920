import type { Test } from 'tap'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { connectPublisher } from '../../clients.ts'
import { control, institutions, playing, serviceOf, station } from '../../events.ts'
import { startTestHub } from '../../start-hub.ts'
import { onStore, type StoreSettings } from '../../stores.ts'

/*
 * GET /livestreams/{id}/events and GET /events/{id} (design.md §9).
 */
const [own = '', other = ''] = institutions
const livestream = station()
const eventsOf = (id: string) => `/livestreams/${encodeURIComponent(id)}/events`

async function start(t: Test, store: StoreSettings) {
  const hub = await startTestHub(t, store)
  const api = await openApi(t, hub)
  const studio = await connectPublisher(t, hub, await hub.publisher([own]), own)
  const user = await addUser(hub, api, own)
  const stranger = await addUser(hub, api, other)
  const get = (path: string, token: string | undefined = user.token) => api.call('GET', path, { token })
  return { hub, api, studio, stranger, get }
}

onStore('embedded', 'the events of a livestream are listed by page', async (t, store) => {
  const { studio, stranger, get } = await start(t, store)
  const sent = [
    playing(livestream, { title: 'One' }),
    control(livestream),
    playing(livestream, { title: 'Two', services: [livestream, station(0, 1)].map(serviceOf) }),
  ]
  const ids: (string | null)[] = []
  for (const event of sent) ids.push((await studio.publish(event)).id)
  await studio.publish(playing(livestream, { length: 0 }))

  const { status, json } = await get(eventsOf(livestream.id))
  t.equal(status, 200)
  t.match(json, {
    events: [...sent].reverse().map((_, nth) => ({ event: { id: ids[2 - nth] } })),
    next: null,
  })
  t.equal((json.events as unknown[]).length, 3, 'what was refused is not the business of subscribers')
  t.same((await get(eventsOf(livestream.id), stranger.token)).json, json, 'whoever may subscribe may ask')

  const first = await get(`${eventsOf(livestream.id)}?limit=2`)
  t.same(first.json.events, (json.events as unknown[]).slice(0, 2))
  const second = await get(`${eventsOf(livestream.id)}?limit=2&before=${first.json.next}`)
  t.same(second.json, { events: (json.events as unknown[]).slice(2), next: null, trace: null })
  t.match((await get(eventsOf(station(0, 2).id))).json, { events: [], next: null }, 'nothing was published')
})

onStore('embedded', 'an institution asks what became of its events', async (t, store) => {
  const { hub, api, studio, stranger, get } = await start(t, store)
  const report = await studio.publish(playing(livestream, { title: 'One' }))
  const { status, json } = await get(`/events/${report.id}`)
  t.equal(status, 200)
  t.match(json, { report: { ...report }, event: { id: report.id, title: 'One' } })

  const { token } = await addUser(hub, api, own)
  const answer = await api.call('POST', '/events/de.org.hub.v1.radio.track.playing', {
    token,
    body: playing(station(0, 1), { title: 'Two' }),
  })
  const { id } = Object(answer.json.event)
  t.match(
    (await get(`/events/${id}`)).json,
    { report: { outcome: 'failed', id }, event: null },
    'a new topic',
  )

  const unknown = [String(BigInt(report.id ?? '') + 1n), '17', 'x', '%20', 'feedback%2Fx', '9'.repeat(40)]
  for (const path of unknown)
    t.match(await get(`/events/${path}`), { status: 404, json: { message: 'Event not found' } }, path)
  t.match(
    await get(`/events/${report.id}`, stranger.token),
    { status: 404, json: { message: 'Event not found' } },
    'the same as for one that nobody published',
  )
})

onStore('embedded', 'who may ask, and for what', async (t, store) => {
  const { hub, api, get } = await start(t, store)
  const publisher = await addUser(hub, api, own, { permissions: ['publish'] })
  const subscriber = await addUser(hub, api, own, { permissions: ['subscribe'] })
  t.match(await get(eventsOf(livestream.id), publisher.token), { status: 403 })
  t.match(await get('/events/17', subscriber.token), { status: 403 })
  for (const path of [eventsOf(livestream.id), '/events/17'])
    t.match(await api.call('GET', path), { status: 401 })

  for (const id of ['x', `feedback/${own}`, 'urn:org:permanent-livestream:0000000000000000'])
    t.match(await get(eventsOf(id)), { status: 404, json: { message: 'Livestream not found' } }, id)
  const wrong = [
    ['limit=0', '.query.limit', 'minimum'],
    ['limit=201', '.query.limit', 'maximum'],
    ['limit=', '.query.limit', 'type'],
    ['limit=1.5', '.query.limit', 'type'],
    ['limit=1&limit=2', '.query.limit', 'type'],
    ['before=-1', '.query.before', 'minimum'],
    ['before=99999999999999999999', '.query.before', 'maximum'],
    ['before=x', '.query.before', 'type'],
    ['after=1', '.query.after', 'additionalProperties'],
  ] as const
  for (const [query, path, keyword] of wrong)
    t.match(
      await get(`${eventsOf(livestream.id)}?${query}`),
      { status: 400, json: { errors: [{ path, errorCode: `${keyword}.openapi.validation` }] } },
      query,
    )
  const both = await get(`${eventsOf(livestream.id)}?limit=0&before=x`)
  t.equal((both.json.errors as unknown[]).length, 2, 'all that is wrong is named')
})

onStore('embedded', 'a page has 256 KiB, and what is read costs what publishing costs', async (t, store) => {
  const { studio, get } = await start(t, { ...store, HUB_PUBLISH_RATE: '5' })
  for (let nth = 0; nth < 4; nth++)
    await studio.publish(playing(livestream, { title: `${nth}`, mpn: 'x'.repeat(100_000) }))
  const path = `${eventsOf(livestream.id)}?limit=200`
  const first = await get(path)
  t.same(
    (first.json.events as { event: { title: string } }[]).map(({ event }) => event.title),
    ['3', '2'],
  )
  const rest = await get(`${path}&before=${first.json.next}`)
  t.same(
    (rest.json.events as { event: { title: string } }[]).map(({ event }) => event.title),
    ['1', '0'],
  )
  t.equal(rest.json.next, null)

  const began = performance.now()
  const answers = await Promise.all(Array.from({ length: 10 }, () => get(path)))
  const refused = answers.filter(({ status }) => status === 429)
  // While a slow machine answers, the bucket gets five tokens a second. A page costs more than three.
  const most = 4 + (5 * (performance.now() - began)) / 1000 / 3
  t.ok(10 - refused.length <= most, `${refused.length} of 10`)
  for (const { headers } of refused) t.match(headers['retry-after'], /^[1-9]$/)
  t.ok(answers.every(({ status }) => status === 200 || status === 429))
})
