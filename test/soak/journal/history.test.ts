import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Message } from '../../../event/message.ts'
import { appendChanges, everyPrefix, journalPrefix, latestPrefix } from '../../../journal/entry.ts'
import type { EventPage } from '../../../journal/history/history.ts'
import { digitsOf } from '../../../store/commit.ts'
import { openEmbeddedStore } from '../../../store/embedded.ts'
import { formatChange } from '../../../store/stored-value.ts'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { connect, connectPublisher } from '../../clients.ts'
import { control, institutions, playing, playingTopic, serviceOf, station } from '../../events.ts'
import { followEvents } from '../../follow.ts'
import { pushing, startReceiver } from '../../receiver.ts'
import { startTestHub, type TestHub, temporaryDirectory } from '../../start-hub.ts'
import { onEachStore, onStore } from '../../stores.ts'

/*
 * The admin commands that show operators what became of events (design.md §4).
 */
const [own = '', other = ''] = institutions
const livestream = station()
const name = 'de.org.hub.v1.radio.track.playing'

async function startStudio(t: Test, env: Record<string, string>, directory?: string) {
  const hub = await startTestHub(t, env, directory)
  const studio = await connectPublisher(t, hub, await hub.publisher([own]), own)
  return { hub, studio }
}

const list = (hub: Pick<TestHub, 'ask'>, args: Record<string, unknown>) =>
  hub.ask<EventPage>('events.list', args)
const titles = ({ events }: EventPage) => events.map(({ title }) => title)

onEachStore('the events of a livestream are listed, the newest first', async (t, store) => {
  const { hub, studio } = await startStudio(t, store)
  const report = await studio.publish(playing(livestream, { title: 'One', playlistItemId: 'a' }))
  await studio.publish(playing(station(0, 1), { title: 'Elsewhere' }))
  await studio.publish(control(livestream))
  await studio.publish(
    playing(livestream, { title: 'Two', services: [livestream, station(0, 1)].map(serviceOf) }),
  )

  const { events, next } = await list(hub, { livestream: livestream.id })
  t.equal(next, null)
  t.same(titles({ events, next }), ['Two', null, 'One'])
  t.match(events, [
    { outcome: 'published', services: [livestream.id, station(0, 1).id] },
    { event: 'de.org.hub.v1.radio.control', name: 'traffic-announcement' },
    { id: report.id, playlistItemId: 'a', artist: 'Mira Hollund', institutionId: own, errors: [] },
  ])
  t.same(await list(hub, { livestream: livestream.externalId }), { events, next }, 'also by its external id')
  t.same(await list(hub, { livestream: 'küstenwelle 1' }), { events, next }, 'or by its whole title')

  const first = await list(hub, { livestream: livestream.id, limit: 2 })
  t.same(first.events, events.slice(0, 2))
  t.equal(first.next, events[1]?.position)
  const rest = await list(hub, { livestream: livestream.id, limit: 2, before: first.next })
  t.same(rest, { events: events.slice(2), next: null })
  t.same(titles(await list(hub, { livestream: livestream.id, item: 'a' })), ['One'])
})

onEachStore('the events of an institution are listed, whatever became of them', async (t, store) => {
  const { hub, studio } = await startStudio(t, store)
  await studio.publish(playing(livestream, { title: 'Good' }))
  await studio.publish(playing(livestream, { title: 'Bad', length: 0, playlistItemId: 'b' }))
  await studio.publish(playing(station(1), { title: 'Foreign' }))
  await studio.publish('{ no JSON')
  await studio.publish(playing(livestream, { title: 'Tried' }), { topic: `inbox/${own}/check` })
  await studio.publish(playing(livestream, { title: 'Denied' }), { topic: `inbox/${other}` })

  const all = await list(hub, { institution: own })
  t.same(
    all.events.map(({ title, outcome, dryRun }) => [title, outcome, dryRun ?? false]),
    [
      ['Denied', 'blocked', false],
      ['Tried', 'published', true],
      [null, 'invalid', false],
      ['Foreign', 'blocked', false],
      ['Bad', 'invalid', false],
      ['Good', 'published', false],
    ],
  )
  t.same((await list(hub, { institution: other })).events, [], 'others see nothing of it')
  const asked = async (outcome: string) => titles(await list(hub, { institution: own, outcome }))
  t.same(await asked('published'), ['Good'])
  t.same(await asked('invalid'), [null, 'Bad'])
  t.same(await asked('refused'), ['Denied', null, 'Foreign', 'Bad'])
  t.same(await asked('dry-run'), ['Tried'])
  t.match(await list(hub, { institution: own, item: 'b' }), {
    events: [{ title: 'Bad', errors: [{ path: '.length' }] }],
  })

  const { events } = await list(hub, { livestream: livestream.id })
  t.same(
    titles({ events, next: null }),
    ['Denied', 'Bad', 'Good'],
    'what was refused for a livestream stands with it',
  )
})

onEachStore('what was decided since a time, and before one', async (t, store) => {
  const { hub, studio } = await startStudio(t, store)
  await studio.publish(playing(livestream, { title: 'One' }))
  await new Promise((resolve) => setTimeout(resolve, 20))
  const between = new Date().toISOString()
  await new Promise((resolve) => setTimeout(resolve, 20))
  await studio.publish(playing(livestream, { title: 'Two' }))
  const whose = { institution: own }
  t.same(titles(await list(hub, { ...whose, since: between })), ['Two'])
  t.same(titles(await list(hub, { ...whose, before: between })), ['One'])
  t.same(titles(await list(hub, { ...whose, since: '2100-01-01T00:00:00Z' })), [])
  t.same(titles(await list(hub, { ...whose, before: '2000-01-01T00:00:00Z' })), [])

  for (const asked of [whose, { livestream: livestream.id }, {}]) {
    const [two, one] = (await list(hub, asked)).events
    const since = (position = 0) => list(hub, { ...asked, since: position })
    t.same(titles(await since(one?.position)), ['Two', 'One'], 'also from a position on')
    t.same(titles(await since(Number(one?.position) + 1)), ['Two'])
    t.same(titles(await since(Number(two?.position) + 1)), [])
  }
})

onEachStore('one event is shown with its report, and where it went', async (t, store) => {
  const { hub, studio } = await startStudio(t, store)
  const player = await connect(t, hub, await hub.subscriber('radio/#'))
  await player.client.subscribeAsync('radio/#', { qos: 0 })
  const app = await connect(t, hub, await hub.subscriber('radio/#'), { clientId: 'app', clean: false })
  await app.client.subscribeAsync(`radio/${livestream.id}/#`, { qos: 1 })
  const both = [livestream, station(0, 1)]
  const report = await studio.publish(playing(livestream, { title: 'One', services: both.map(serviceOf) }))
  const shown = await hub.ask<Record<string, unknown>>('events.show', { id: report.id })
  t.match(shown, {
    id: report.id,
    outcome: 'published',
    institutionId: own,
    title: 'One',
    published: { id: report.id, title: 'One' },
    report: { ...report },
    refused: null,
    topics: both.map((one) => ({ topic: playingTopic(one), retained: true })),
    nodes: [{ recipients: 3 }],
    stages: { decided: Number, stored: Number, written: Number },
    deliveries: [],
  })
  const [topic] = shown.topics as { position: number }[]
  t.match(await hub.ask('events.show', { id: String(topic?.position) }), { id: report.id }, 'by a position')
  t.match(await hub.ask('events.show', { id: String(shown.position) }), { id: report.id })

  await studio.publish(playing(livestream, { title: 'Later' }))
  t.match(await hub.ask('events.show', { id: report.id }), {
    topics: [{ retained: false }, { retained: true }],
  })
  const ahead = { start: new Date(Date.now() + 3_600_000).toISOString() }
  await studio.publish({
    ...playing(station(0, 1), ahead),
    event: 'de.org.hub.v1.radio.track.next',
  })
  await studio.publish(playing(livestream, { title: 'Last' }))
  const newest = await hub.ask<{ at: string | null; eventTime: string | null; livestream: { id: string } }[]>(
    'events.newest',
    { institution: own },
  )
  t.match(newest[0], { eventTime: null, institution: { id: own } }, 'the silent livestreams come first')
  t.match(
    newest.slice(-2).map(({ eventTime, livestream: { id } }) => [id, eventTime]),
    [
      [station(0, 1).id, ahead.start],
      [livestream.id, String],
    ],
    'not by event time: a programme may be sent ahead',
  )
  t.ok(newest.slice(-2).every(({ at }) => Math.abs(Date.parse(String(at)) - Date.now()) < 60_000))
  const slow = await hub.ask<{ id: string }[]>('events.slow')
  t.equal(slow.length, 4)
  t.ok(slow.some(({ id }) => id === report.id))

  const future = String(BigInt(report.id ?? '') + (86_400_000n << 48n))
  for (const id of [future, '1', '99999', 'x', `${'9'.repeat(30)}`])
    await t.rejects(hub.ask('events.show', { id: id === '1' ? '0' : id }), /there is no event/)
})

onStore(
  'embedded',
  'of a refused event the first 4,096 bytes are kept, and sent to nobody',
  async (t, store) => {
    const { hub, studio } = await startStudio(t, store)
    const bytes = Buffer.from([0xff, 0x00, 0x80, 0x7b])
    const long = JSON.stringify({ title: `${'x'.repeat(4_085)}ä${'x'.repeat(2_000)}` })
    for (const payload of [Buffer.from(long), bytes]) {
      t.match(await studio.publish(payload), { outcome: 'invalid' })
      const raw = studio.received.all.at(-1)?.payload.toString() ?? ''
      t.equal(JSON.stringify(JSON.parse(raw)), raw, 'the feedback ends with the report')
    }
    const { events } = await list(hub, { institution: own })
    const [second, first] = await Promise.all(
      events.map(({ position }) => hub.ask<{ refused: unknown }>('events.show', { id: String(position) })),
    )
    t.same(second?.refused, { bytes: 4, isWhole: true, base64: bytes.toString('base64') })
    t.same(first?.refused, {
      bytes: Buffer.byteLength(long),
      isWhole: false,
      text: Buffer.from(long).subarray(0, 4_095).toString(),
    })

    const away = await hub.publisher([own])
    const reader = await connect(t, hub, away, { clientId: 'away', clean: false })
    await reader.client.subscribeAsync(`feedback/${own}`, { qos: 1 })
    await reader.client.endAsync()
    await studio.publish(bytes)
    const back = await connect(t, hub, away, { clientId: 'away', clean: false })
    t.match((await back.received.until(() => true)).json, { outcome: 'invalid' })
  },
)

onStore('embedded', 'a denied publish is kept for each institution of its publisher', async (t, store) => {
  const hub = await startTestHub(t, store)
  const { client } = await connect(t, hub, await hub.publisher([own, other]))
  await client.publishAsync('radio/nonsense', JSON.stringify(playing(livestream)), { qos: 1 })
  for (const institution of [own, other]) {
    const { events } = await list(hub, { institution })
    t.match(events, [{ outcome: 'blocked', institutionId: institution, title: 'Morgenlicht' }])
    t.match(await hub.ask('events.show', { id: String(events[0]?.position) }), {
      refused: { isWhole: true, text: /Morgenlicht/ },
    })
  }
})

onEachStore('events over HTTPS are in the history, with what was refused of them', async (t, store) => {
  const { hub, studio } = await startStudio(t, store)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own, { permissions: ['publish'] })
  const publish = async (body: unknown, query = '') =>
    (await api.call('POST', `/events/${name}${query}`, { token, body })).json
  await studio.publish(playing(livestream, { title: 'Over MQTT' }))
  const before = studio.received.all.length
  const accepted = await publish(playing(livestream, { title: 'Over HTTPS' }))
  t.match(accepted.statuses, { published: 1 })
  t.match((await publish(playing(station(0, 1), { title: 'New' }))).statuses, { failed: 1 })
  await publish(playing(livestream, { title: 'Bad', length: 0 }))
  await publish(playing(station(1), { title: 'Foreign' }))
  await publish(playing(livestream, { title: 'In part', services: [livestream, station(1)].map(serviceOf) }))
  await publish(playing(livestream, { title: 'Tried' }), '?dryRun=true')
  const { events } = await list(hub, { institution: own })
  t.same(
    events.map(({ title, outcome, errors }) => [title, outcome, errors.length]),
    [
      ['In part', 'published', 1],
      ['Foreign', 'blocked', 1],
      ['Bad', 'invalid', 1],
      ['New', 'failed', 1],
      ['Over HTTPS', 'published', 0],
      ['Over MQTT', 'published', 0],
    ],
  )
  t.match(await hub.ask('events.show', { id: Object(accepted.event).id }), {
    report: { outcome: 'published', statuses: { published: 1 } },
    topics: [{ topic: playingTopic(livestream) }],
  })
  await studio.publish(playing(livestream, { title: 'Last' }))
  t.equal(studio.received.all.length, before + 1, 'nothing of it is sent as feedback')
})

onStore('embedded', 'an event is found among hundreds of the same seconds', async (t, store) => {
  const { hub, studio } = await startStudio(t, { ...store, HUB_PUBLISH_RATE: '0' })
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own, { permissions: ['publish'] })
  const sent = Array.from({ length: 700 }, (_, nth) =>
    studio.client.publishAsync(`inbox/${own}`, JSON.stringify(playing(livestream, { title: `${nth}` })), {
      qos: 1,
    }),
  )
  await Promise.all(sent)
  const { events } = await list(hub, { institution: own, limit: 1_000 })
  t.equal(events.length, 700)
  for (const { id, title } of [...events.slice(0, 3), ...events.slice(-3)]) {
    t.match(await hub.ask('events.show', { id }), { id, title })
    t.match((await api.call('GET', `/events/${id}`, { token })).json, { event: { id, title } })
  }
  const unknown = BigInt(events.at(-1)?.id ?? '') + 7n
  await t.rejects(hub.ask('events.show', { id: `${unknown}` }), /there is no event/, 'all were looked at')
  t.match(await api.call('GET', `/events/${unknown}`, { token }), {
    status: 404,
    json: { message: 'Event not found: too many around its time' },
  })
})

onStore('embedded', 'events are found and listed though the clock was set back', async (t, store) => {
  const real = Date.now
  let back = 0
  t.intercept(Date, 'now', { value: () => real() - back })
  const home = await temporaryDirectory(t)
  const begin = new Date(real()).toISOString()
  const ids: (string | null)[] = []
  for (const seconds of [0, 120, 7_200]) {
    back = seconds * 1_000
    const { hub, studio } = await startStudio(t, store, home)
    for (const more of [0, 60]) {
      back += more * 1_000
      for (let nth = 0; nth < 5; nth++) ids.push((await studio.publish(playing(livestream))).id)
    }
    for (const id of ids) t.match(await hub.ask('events.show', { id }), { id })
    const { events } = await list(hub, { institution: own, since: begin })
    t.same(events.map(({ id }) => id).reverse(), ids)
    await hub.close()
  }
})

onEachStore('what was published in part is in the list of each livestream', async (t, store) => {
  const { hub, studio } = await startStudio(t, store)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own, { permissions: ['publish'] })
  const [fresh, refused] = [station(0, 1), station(0, 2)]
  await studio.publish(playing(livestream, { title: 'Makes the topic' }))
  const tails = await Promise.all([
    followEvents(t, hub, { livestream: fresh.id, outcome: 'refused' }),
    followEvents(t, hub, { livestream: refused.externalId }),
  ])
  const services = [
    ...[livestream, fresh].map(serviceOf),
    { ...serviceOf(refused), publisherId: station(1).publisher.id },
  ]
  const body = playing(livestream, { title: 'In part', playlistItemId: 'a', services })
  const { json } = await api.call('POST', `/events/${name}`, { token, body })
  t.match(json.statuses, { published: 1, failed: 1, blocked: 1 })
  const expected = {
    title: 'In part',
    outcome: 'published',
    services: [livestream.id],
    refusedServices: [fresh.id, refused.externalId],
  }
  for (const { id } of [fresh, refused]) {
    for (const filter of [{}, { outcome: 'refused' }, { item: 'a' }])
      t.match(await list(hub, { livestream: id, ...filter }), { events: [expected] })
    t.same(titles(await list(hub, { livestream: id, outcome: 'published' })), [])
  }
  for (const next of tails) t.match(await next(), expected)
  const ofPublished = await list(hub, { livestream: livestream.id })
  t.same(titles(ofPublished), ['In part', 'Makes the topic'], 'once where it was published')
  t.match(await hub.ask('events.show', { id: Object(json.event).id }), expected)
})

onEachStore('title and artist of a long refused event are listed', async (t, store) => {
  const { hub, studio } = await startStudio(t, store)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own, { permissions: ['publish'] })
  const contributors = Array.from({ length: 100 }, (_, nth) => ({
    name: `Someone ${nth} ${'ö'.repeat(20)}`,
    role: 'performer',
  }))
  await studio.publish(playing(livestream, { title: 'Refused', length: 0, contributors }))
  await studio.publish(playing(livestream, { title: 'Tried', contributors }), {
    topic: `inbox/${own}/check`,
  })
  await studio.publish(playing(livestream, { title: 'Denied', contributors }), { topic: `inbox/${other}` })
  const services = [livestream, station(0, 1)].map(serviceOf)
  const body = playing(livestream, { title: 'In part', contributors, services })
  await studio.publish(playing(livestream, { title: 'Makes the topic' }))
  await api.call('POST', `/events/${name}`, { token, body })
  await api.call('POST', `/events/${name}`, { token, body: { ...body, title: 'Over HTTPS', length: 0 } })
  const { events } = await list(hub, { institution: own })
  t.same(
    events.map(({ title, artist }) => [title, artist]),
    ['Over HTTPS', 'In part', 'Makes the topic', 'Denied', 'Tried', 'Refused'].map((title) => [
      title,
      'Mira Hollund',
    ]),
  )
})

onStore('embedded', 'without HUB_HISTORY, what is asked is what readers still need', async (t, store) => {
  const { hub, studio } = await startStudio(t, { ...store, HUB_HISTORY: '0' })
  const { id } = await studio.publish(playing(livestream, { title: 'One' }))
  t.same(titles(await list(hub, { livestream: livestream.id })), ['One'])
  t.match(await hub.ask('events.show', { id }), { title: 'One' })
})

onStore('embedded', 'what is left of an event is shown when the rest is kept no more', async (t) => {
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  const { hub, studio } = await startStudio(t, pushing(receiver), home)
  const api = await openApi(t, hub)
  const user = await addUser(hub, api, own)
  const both = [livestream, station(0, 1)]
  const publish = (title: string) =>
    studio.publish(playing(livestream, { title, services: both.map(serviceOf) }))
  await publish('Makes the topics')
  const body = { type: 'PUBSUB', method: 'PUSH', contact: 'a@b.example', topic: livestream.id }
  await api.call('POST', '/subscriptions', { token: user.token, body: { ...body, url: receiver.url() } })
  const ids = [await publish('Without messages'), await publish('Without report')].map(({ id }) => id)
  await publish('Retained')
  const show = (node: typeof hub, id?: string | null) =>
    node.ask<{ position: number; topics: { position: number }[]; deliveries: unknown[] }>('events.show', {
      id,
    })
  await hub.until(async () =>
    /delivered.*delivered/.test(JSON.stringify(await Promise.all(ids.map((id) => show(hub, id))))),
  )
  const [first, second] = [await show(hub, ids[0]), await show(hub, ids[1])]
  await hub.close()
  const gone = [...first.topics, second].map(({ position }) => digitsOf(position))
  const kept = await openEmbeddedStore(join(home, 'data', 'store'))
  for (const prefix of [journalPrefix, latestPrefix, everyPrefix]) {
    for await (const [key] of kept.range(prefix))
      if (gone.some((position) => key.endsWith(position))) await kept.commit([{ del: key }])
  }
  // The journal removes only what lies before its floor.
  const state = { window: [], passed: 1, historyFrom: 1, historyBytes: 0, round: { at: '', bytes: 0 } }
  const floor = second.position + 1
  await kept.commit([{ put: 'trimming/state', value: JSON.stringify({ ...state, floor }) }])
  await kept.close()

  const again = await startTestHub(t, pushing(receiver), home)
  t.match(await show(again, ids[0]), { topics: [], report: Object, deliveries: first.deliveries })
  t.match(await show(again, ids[1]), {
    title: 'Without report',
    report: null,
    services: both.map(({ id }) => id),
    topics: second.topics,
    deliveries: second.deliveries,
  })
  for (const { position } of second.topics)
    t.match(await show(again, String(position)), { topics: second.topics }, 'by either of its positions')
  t.equal(first.deliveries.length + second.deliveries.length, 2)
  const restarted = await openApi(t, again)
  const [owner, stranger] = [await addUser(again, restarted, own), await addUser(again, restarted, other)]
  const asks = (token: string, id?: string | null) => restarted.call('GET', `/events/${id}`, { token })
  t.match((await asks(owner.token, ids[0])).json, { event: null, report: { id: ids[0] } })
  t.match((await asks(owner.token, ids[1])).json, { event: { title: 'Without report' }, report: null })
  for (const id of ids) t.equal((await asks(stranger.token, id)).status, 404)
})

onEachStore('a node that is started again knows what became of events', async (t, store) => {
  const { hub, studio } = await startStudio(t, store)
  const { id } = await studio.publish(playing(livestream, { title: 'One' }))
  await studio.publish('{')
  const before = await list(hub, { institution: own })
  await hub.close()
  const again = await startTestHub(t, store, hub.home)
  t.same(await list(again, { institution: own }), before)
  t.match(await again.ask('events.show', { id }), {
    title: 'One',
    nodes: [{ recipients: null }],
    stages: null,
  })
})

// 3.0.0-beta.2 has taken such messages over.
onStore('embedded', 'events of 3.0.0-beta.1, which name no institution, are listed', async (t) => {
  const home = await temporaryDirectory(t)
  await mkdir(join(home, 'data'))
  const store = await openEmbeddedStore(join(home, 'data', 'store'))
  const time = Date.now() - 1000
  const former = playing(livestream, { title: 'Former', id: '20261121120000-1-abc' })
  const message: Message = {
    topic: playingTopic(livestream),
    stream: livestream.id,
    payload: Buffer.from(JSON.stringify(former)),
    qos: 1,
    retained: { slot: '', time },
    queue: { keep: 'latest', time },
  }
  await store.commit([formatChange(), ...appendChanges([message], time)])
  await store.close()
  const { hub, studio } = await startStudio(t, {}, home)
  const { events } = await list(hub, { livestream: livestream.id })
  t.match(events, [{ title: 'Former' }])
  for (const { position, id } of events) {
    t.match(await hub.ask('events.show', { id: String(position) }), { id, published: { id } })
  }
  await list(hub, { institution: own })
  const { id } = await studio.publish(playing(livestream, { title: 'New' }))
  t.match(await hub.ask('events.show', { id }), { title: 'New', report: { id } })
})

onEachStore('events are followed as they are decided', async (t, store) => {
  const { hub, studio } = await startStudio(t, store)
  const all = await followEvents(t, hub, {})
  const refused = await followEvents(t, hub, { institution: own, outcome: 'refused' })
  const elsewhere = await followEvents(t, hub, { livestream: station(0, 1).id })
  await studio.publish(playing(livestream, { title: 'One' }))
  await studio.publish(playing(livestream, { title: 'Bad', length: 0 }))
  await studio.publish(playing(station(0, 1), { title: 'Two' }))
  t.same([(await all()).title, (await all()).title, (await all()).title], ['One', 'Bad', 'Two'])
  t.match(await refused(), { title: 'Bad', errors: [{ path: '.length' }] })
  t.match(await elsewhere(), { title: 'Two' })
})

onStore('embedded', 'what is asked wrongly is named', async (t, store) => {
  const { hub } = await startStudio(t, store)
  const wrong: [Record<string, unknown>, RegExp][] = [
    [{ livestream: 'x', institution: own }, /cannot be given together/],
    [{ livestream: 'x' }, /there is no livestream "x"/],
    [{ livestream: 'Küstenwelle' }, /there is no livestream "Küstenwelle"/],
    [{ livestream: 7 }, /livestream must be the id, external id or title of a livestream, not 7/],
    [{ institution: 'x' }, /x/],
    [{ institution: own, outcome: 'good' }, /outcome must be one of published/],
    [{ institution: own, since: 'yesterday' }, /since must be an instant/],
    [{ institution: own, limit: 0 }, /limit must be a whole number from 1 to 1000/],
    [{ institution: own, limit: 1.5 }, /limit/],
    [{ institution: own, before: -1 }, /before/],
  ]
  for (const [args, message] of wrong) await t.rejects(hub.ask('events.list', args), message)
})
