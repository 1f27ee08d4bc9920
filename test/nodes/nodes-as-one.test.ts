import type { Test } from 'tap'
import { closed, connect, connectPublisher } from '../clients.ts'
import { institutions, playing, playingTopic, serviceOf, station } from '../events.ts'
import { startTestHub } from '../start-hub.ts'
import { onStore, type StoreSettings } from '../stores.ts'

/*
 * Several nodes on one Redis are one hub, seen from outside.
 */
const [own = ''] = institutions
const livestream = station()
const topic = playingTopic(livestream)

async function startNodes(t: Test, store: StoreSettings) {
  return { a: await startTestHub(t, store), b: await startTestHub(t, store) }
}

onStore('redis', 'what is published on one node arrives on the other', async (t, store) => {
  const { a, b } = await startNodes(t, store)
  const subscriber = await a.subscriber('radio/#')
  const publisher = await a.publisher([own])
  await b.until(async () => (await b.ask<unknown[]>('credentials.list')).length === 2)
  const clean = await connect(t, b, subscriber)
  await clean.client.subscribeAsync('radio/#', { qos: 0 })
  const kept = await connect(t, b, subscriber, { clientId: 'kept', clean: false })
  await kept.client.subscribeAsync('radio/#', { qos: 1 })
  const studio = await connectPublisher(t, a, publisher, own)
  const event = playing(livestream, { title: 'First' })
  t.match(await studio.publish(event), { outcome: 'published' })
  t.match((await clean.received.until(() => true)).json, { title: 'First' })
  t.match(await kept.received.until(() => true), { topic, json: { title: 'First' }, packet: { qos: 1 } })

  const late = await connect(t, b, subscriber)
  await late.client.subscribeAsync('radio/#', { qos: 1 })
  t.match(await late.received.until(() => true), { json: { title: 'First' }, packet: { retain: true } })
})

onStore('redis', 'a session made on one node goes on on the other', async (t, store) => {
  const { a, b } = await startNodes(t, store)
  const subscriber = await a.subscriber('radio/#')
  const publisher = await a.publisher([own])
  await b.until(async () => (await b.ask<unknown[]>('credentials.list')).length === 2)
  const first = await connect(t, a, subscriber, { clientId: 'app', clean: false })
  await first.client.subscribeAsync('radio/#', { qos: 1 })
  await first.client.endAsync()
  const studio = await connectPublisher(t, b, publisher, own)
  for (const title of ['One', 'Two']) {
    await studio.publish(playing(station(0, title === 'One' ? 0 : 1), { title }))
  }
  const second = await connect(t, b, subscriber, { clientId: 'app', clean: false })
  await second.received.count(2)
  t.same(
    second.received.all.map(({ json }) => json.title),
    ['One', 'Two'],
  )

  const gone = closed(second.client)
  const third = await connect(t, a, subscriber, { clientId: 'app', clean: false })
  await gone
  await studio.publish(playing(livestream, { title: 'Three' }))
  t.match((await third.received.until(({ json }) => json.title === 'Three')).json, { title: 'Three' })
})

onStore('redis', 'a large event for many livestreams cuts off nobody on another node', async (t, store) => {
  const { a, b } = await startNodes(t, store)
  const subscriber = await a.subscriber('radio/#')
  const publisher = await a.publisher([own])
  await b.until(async () => (await b.ask<unknown[]>('credentials.list')).length === 2)
  const app = await connect(t, b, subscriber)
  await app.client.subscribeAsync('radio/#', { qos: 1 })
  const studio = await connectPublisher(t, a, publisher, own)
  const several = [0, 1, 2, 3, 4, 5].map((index) => station(0, index))
  const event = { ...playing(livestream), title: 'x'.repeat(390_000), services: several.map(serviceOf) }
  t.match(await studio.publish(event), { outcome: 'published', statuses: { published: 6 } })
  await app.received.count(6)
  t.ok(app.client.connected)
})
