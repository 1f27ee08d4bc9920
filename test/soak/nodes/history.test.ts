import t from 'tap'
import type { EventRow } from '../../../journal/history/event-row.ts'
import type { EventPage } from '../../../journal/history/history.ts'
import { connect, connectPublisher } from '../../clients.ts'
import { institutions, playing, station } from '../../events.ts'
import { followEvents } from '../../follow.ts'
import { startFleet } from '../../nodes/fleet.ts'
import { withoutRedis } from '../../redis-server.ts'
import { startTestHub } from '../../start-hub.ts'
import { onStore } from '../../stores.ts'

/*
 * Every node knows what became of all events, also of those of a killed node.
 */
const [own = ''] = institutions
const livestream = station()

onStore('redis', 'a node tells what became of events on another one', async (t, store) => {
  const [a, b] = [await startTestHub(t, store), await startTestHub(t, store)]
  const publisher = await a.publisher([own])
  const subscriber = await a.subscriber('radio/#')
  const studio = await connectPublisher(t, a, publisher, own)
  await b.until(async () => (await b.ask<unknown[]>('credentials.list')).length === 2)
  for (const [hub, clientId] of [
    [b, 'one'],
    [b, 'two'],
    [a, 'three'],
  ] as const) {
    const { client } = await connect(t, hub, subscriber, { clientId, clean: clientId !== 'two' })
    await client.subscribeAsync('radio/#', { qos: 1 })
  }
  const followed = [await followEvents(t, a), await followEvents(t, b)]
  const { id } = await studio.publish(playing(livestream, { title: 'One' }))
  await studio.publish('{')
  for (const next of followed) {
    t.match(await next(), { id, title: 'One', outcome: 'published' })
    t.match(await next(), { outcome: 'invalid' })
  }
  for (const query of [{ institution: own }, { livestream: livestream.id }]) {
    const { events } = await b.ask<EventPage>('events.list', query)
    t.same(await a.ask<EventPage>('events.list', query), { events, next: null })
    t.match(events.at(-1), { id, title: 'One' })
  }
  // A node counts recipients a moment after it has written to them.
  // An answer lacks what a node does not tell in time.
  let shown: { nodes: { recipients: number }[] } = { nodes: [] }
  await b.until(async () => {
    shown = await b.ask('events.show', { id })
    return shown.nodes.reduce((sum, { recipients }) => sum + recipients, 0) === 3
  })
  t.same(
    shown.nodes.map(({ recipients }) => recipients),
    [2, 1],
  )
  t.match(shown, { stages: { stored: Number }, title: 'One' }, 'the stages come from the node that took it')
  let slow: unknown[] = []
  await b.until(async () => {
    slow = await b.ask('events.slow')
    return slow.length > 0
  })
  t.match(slow, [{ id }])
})

t.test('after kill -9 the other node knows all that was acknowledged', { skip: withoutRedis }, async (t) => {
  const { a, b } = await startFleet(t, 2)
  const publisher = await a.publisher([own])
  const studio = await connectPublisher(t, a, publisher, own)
  const ids: (string | null)[] = []
  for (let nth = 0; nth < 20; nth++) {
    const { id } = await studio.publish(playing(livestream, { playlistItemId: `item-${nth}` }))
    ids.push(id)
  }
  await a.kill()
  const { events } = await b.ask<{ events: EventRow[] }>('events.list', { livestream: livestream.id })
  t.same(events.map(({ id }) => id).reverse(), ids)
  t.match(await b.ask('events.show', { id: ids[7] }), { playlistItemId: 'item-7', stages: null })
})

t.test('nodes whose clocks differ find events by their ids', { skip: withoutRedis }, async (t) => {
  const { a, b } = await startFleet(t, 2, { ahead: (index) => index * 20_000 })
  const publisher = await a.publisher([own])
  await b.knows(1)
  const studios = [await connectPublisher(t, a, publisher, own), await connectPublisher(t, b, publisher, own)]
  for (let nth = 0; nth < 30; nth++) await studios[nth % 2]?.publish(playing(livestream, { title: `${nth}` }))
  const { events } = await a.ask<EventPage>('events.list', { institution: own })
  t.equal(events.length, 30)
  for (const { id, title } of events) t.match(await a.ask('events.show', { id }), { id, title })
})

onStore(
  'redis',
  'a report for thousands of institutions reaches all of them on another node',
  async (t, store) => {
    const [a, b] = [await startTestHub(t, store), await startTestHub(t, store)]
    const many = Array.from({ length: 2_500 }, (_, nth) => `urn:org:institution:many-${nth}`)
    const publisher = await a.publisher(many)
    await b.until(async () => (await b.ask<unknown[]>('credentials.list')).length === 1)
    const { client: reader, received } = await connect(t, b, publisher)
    await reader.subscribeAsync(`feedback/${many.at(-1)}`, { qos: 1 })
    const { client } = await connect(t, a, publisher)
    await client.publishAsync('inbox/urn:org:institution:of-others', '{}', { qos: 1 })
    t.match((await received.until(() => true)).json, { outcome: 'blocked' })
    t.notOk(
      b.lines.some(({ msg }) => String(msg).startsWith('the node lost track')),
      'the node goes on',
    )
  },
)
