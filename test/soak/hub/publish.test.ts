import { createHash } from 'node:crypto'
import { eventKinds } from '../../../event/kind.ts'
import { radioTopic } from '../../../event/topic.ts'
import { connect, connectPublisher } from '../../clients.ts'
import { control, data, exampleOf, playing, playingTopic, serviceOf, station } from '../../events.ts'
import { type Issued, startTestHub } from '../../start-hub.ts'
import { onEachStore } from '../../stores.ts'

const livestream = station(0, 0)
const institution = livestream.institution.id

onEachStore('an event goes from the inbox to the radio tree and comes back as feedback', async (t, store) => {
  const hub = await startTestHub(t, store)
  const publisher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  const app = await connect(t, hub, await hub.subscriber('radio/#'))
  await app.client.subscribeAsync('radio/#', { qos: 1 })
  const event = playing(livestream, { id: 'mine' })

  const report = await publisher.publish(event)

  t.match(report, {
    outcome: 'published',
    statuses: { published: 1, blocked: 0, failed: 0 },
    event: 'de.org.hub.v1.radio.track.playing',
    id: /^\d+$/,
    playlistItemId: 'item-1',
    name: null,
    eventTime: event.start,
    services: [livestream.id],
    errors: [],
    receivedAt: /Z$/,
    payloadHash: createHash('sha256').update(JSON.stringify(event)).digest('hex').slice(0, 16),
    trace: null,
  })
  const arrived = await app.received.until(() => true)
  t.equal(arrived.topic, playingTopic(livestream))
  t.equal(arrived.packet.qos, 1)
  t.equal(arrived.packet.retain, false, 'a live message has no retain flag')
  t.match(arrived.json, { title: event.title, id: report.id, services: [{ id: livestream.id }] })
  t.not(arrived.json.id, 'mine', "a publisher's own id is replaced")
})

onEachStore('the topic of a service is dropped on its way to the radio tree', async (t, store) => {
  const hub = await startTestHub(t, store)
  const publisher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  const app = await connect(t, hub, await hub.subscriber('radio/#'))
  await app.client.subscribeAsync('radio/#', { qos: 1 })
  for (const event of [playing(livestream), control(livestream), data(livestream)]) {
    const service = { ...serviceOf(livestream), topic: { id: 'forged', status: 'MESSAGE_SENT' }, kept: true }
    t.equal((await publisher.publish({ ...event, services: [service] })).outcome, 'published')
    const { topic: _forged, ...rest } = service
    const { json } = await app.received.until(({ json }) => Object(json).event === event.event)
    t.same(Object(json).services, [{ ...rest, id: livestream.id }])
  }
})

onEachStore('each kind of event has its topic', async (t, store) => {
  const hub = await startTestHub(t, store)
  const publisher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  const app = await connect(t, hub, await hub.subscriber('radio/#'))
  await app.client.subscribeAsync('radio/#', { qos: 1 })
  for (const kind of eventKinds) {
    t.equal((await publisher.publish(exampleOf(kind, livestream))).outcome, 'published')
    const topic = radioTopic(livestream.id, kind)
    t.ok(await app.received.until((arrived) => arrived.topic === topic), topic)
  }
})

onEachStore('a late joiner gets the newest value by event time, retained', async (t, store) => {
  const hub = await startTestHub(t, store)
  const publisher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  const app = await connect(t, hub, await hub.subscriber('radio/#'))
  await app.client.subscribeAsync('radio/#', { qos: 1 })
  const at = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString()
  const published = [
    { title: 'second', start: at(10) },
    { title: 'first, late', start: at(-10) },
  ]
  for (const fields of published) await publisher.publish(playing(livestream, fields))

  const live = await app.received.until(({ json }) => json.title === 'first, late')
  t.equal(live.packet.retain, false, 'the older event goes out live')
  const late = await connect(t, hub, await hub.subscriber('radio/#'))
  await late.client.subscribeAsync(playingTopic(livestream), { qos: 0 })
  const value = await late.received.until(() => true)
  t.equal(value.json.title, 'second')
  t.equal(value.packet.retain, true)
  t.equal(value.packet.qos, 0, 'not above the granted QoS')
})

onEachStore('of two events with the same time the later arrival is retained', async (t, store) => {
  const hub = await startTestHub(t, store)
  const publisher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  const start = new Date().toISOString()
  for (const title of ['a', 'b']) await publisher.publish(playing(livestream, { title, start }))
  const [value] = await hub.ask<{ payload: string }[]>('retained.list', { filter: playingTopic(livestream) })
  t.equal(JSON.parse(value?.payload ?? '{}').title, 'b')
})

onEachStore('an event far in the future does not block newer arrivals', async (t, store) => {
  const hub = await startTestHub(t, store)
  const publisher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  const future = new Date(Date.now() + 3_600_000).toISOString()
  await publisher.publish(playing(livestream, { title: 'wrong clock', start: future }))
  await publisher.publish(playing(livestream, { title: 'now' }))
  const [value] = await hub.ask<{ payload: string }[]>('retained.list', { filter: playingTopic(livestream) })
  t.equal(JSON.parse(value?.payload ?? '{}').title, 'now')
})

onEachStore('an event for several livestreams reaches each once', async (t, store) => {
  const hub = await startTestHub(t, store)
  const publisher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  const app = await connect(t, hub, await hub.subscriber('radio/#'))
  await app.client.subscribeAsync('radio/#', { qos: 0 })
  const other = station(0, 1)
  const services = [...(playing(livestream).services as []), ...(playing(other).services as [])]
  const report = await publisher.publish(playing(livestream, { services: [...services, ...services] }))
  t.same(report.services, [livestream.id, other.id])
  t.same(report.statuses, { published: 2, blocked: 0, failed: 0 })
  await app.received.count(2)
  await publisher.publish(playing(livestream, { title: 'end' }))
  await app.received.until(({ json }) => json.title === 'end')
  t.same(
    app.received.all
      .map(({ topic }) => topic)
      .slice(0, -1)
      .sort(),
    [playingTopic(livestream), playingTopic(other)].sort(),
  )
})

onEachStore('a foreign publisher is blocked and told why', async (t, store) => {
  const hub = await startTestHub(t, store)
  const foreign = station(1, 0)
  const publisher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  const app = await connect(t, hub, await hub.subscriber('radio/#'))
  await app.client.subscribeAsync('radio/#', { qos: 1 })

  const blocked = await publisher.publish(playing(foreign))
  t.match(blocked, {
    outcome: 'blocked',
    statuses: { published: 0, blocked: 1, failed: 0 },
    errors: [
      { path: '.services.0', errorCode: 'service.institution.mismatch' },
      { path: '.services.0.institutionId', errorCode: 'service.institution.claim' },
    ],
  })
  const denied = await publisher.publish(playing(foreign), { topic: `inbox/${foreign.institution.id}` })
  t.match(denied, { outcome: 'blocked', errors: [{ path: 'topic', errorCode: 'topic.denied' }] })
  t.ok(publisher.client.connected, 'the connection stays')

  await publisher.publish(playing(livestream, { title: 'mine' }))
  const first = await app.received.until(() => true)
  t.equal(first.json.title, 'mine', 'nothing of the foreign events got through')
})

onEachStore('what is denied is told to the institution that it was for', async (t, store) => {
  const hub = await startTestHub(t, store)
  const [ours, theirs] = [institution, station(1, 0).institution.id]
  const both: Issued = await hub.ask('credentials.add', {
    role: 'publisher',
    label: 'both',
    institutions: [ours, theirs],
    classes: ['control'],
  })
  const studio = await connectPublisher(t, hub, both, ours)
  const reader = await connectPublisher(t, hub, await hub.publisher([theirs]), theirs)
  const denied = { outcome: 'blocked', errors: [{ path: 'topic', errorCode: 'topic.denied' }] }
  t.match(await studio.publish(playing(livestream), { topic: `inbox/${ours}/track` }), denied)
  t.match(await studio.publish(playing(livestream), { topic: `inbox/${ours}/other` }), denied)
  const elsewhere = JSON.stringify(playing(livestream, { playlistItemId: 'nowhere' }))
  t.match(await studio.publish(elsewhere, { topic: 'inbox/urn:org:institution:none' }), denied)
  const first = await reader.received.until(() => true)
  t.match(first.json, { ...denied, playlistItemId: 'nowhere' }, 'all read of what names none of them')
})

onEachStore('QoS 0 and 2 publish as well', async (t, store) => {
  const hub = await startTestHub(t, store)
  const publisher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  for (const qos of [0, 2] as const) {
    t.equal((await publisher.publish(playing(livestream), { qos })).outcome, 'published', `QoS ${qos}`)
  }
})

onEachStore('a large event for many livestreams cuts off nobody who reads', async (t, store) => {
  const hub = await startTestHub(t, store)
  const publisher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  const app = await connect(t, hub, await hub.subscriber('radio/#'))
  await app.client.subscribeAsync('radio/#', { qos: 1 })
  const several = [0, 1, 2, 3, 4, 5].map((index) => station(0, index))
  const event = { ...playing(livestream), title: 'x'.repeat(390_000), services: several.map(serviceOf) }
  t.match(await publisher.publish(event), { outcome: 'published', statuses: { published: 6 } })
  await app.received.count(6)
  t.ok(app.client.connected)
  t.same(new Set(app.received.all.map(({ topic }) => topic)), new Set(several.map(playingTopic)))
})
