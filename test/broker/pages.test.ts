import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Principal } from '../../acl/principal.ts'
import type { Message } from '../../event/message.ts'
import type { Store } from '../../store/store.ts'
import { openBroker, type Peer, peer, publishes, subscribe, subscriber } from '../conformance/peers.ts'

/* Pages get each event after all other subscribers: docs/decisions, "Pages come after all other subscribers". */

const ofPage: Principal = {
  role: 'subscriber',
  username: 'page',
  filters: ['#'],
  temporaryOf: 'user@example.org',
}
const login = { username: 'page', password: Buffer.from('page') }
/** Enough for several breaks of one delivery. */
const many = 40

const messageOf = (text: string, time = 1, topic = 'a'): Message => ({
  topic,
  payload: Buffer.from(text),
  qos: 1,
  queue: { keep: 'every' },
  retained: { slot: '', time },
})

/** Clients with a username are pages. */
const openPages = (t: Test) => openBroker(t, { access: { authenticate: () => ofPage } })
/** Without the second argument of `commit`, no event goes out before its commit. */
const afterCommit = (store: Store): Store => ({ ...store, commit: (changes) => store.commit(changes) })
type Broker = Awaited<ReturnType<typeof openPages>>

const page = (t: Test, broker: Broker, name: string, filters: Record<string, 0 | 1 | 2>, fields = {}) =>
  subscriber(t, broker, name, filters, { ...login, ...fields })
/** `qos`: the hub's own pages subscribe at QoS 1. */
const pages = (t: Test, broker: Broker, qos: 0 | 1) =>
  Promise.all(Array.from({ length: many }, (_, index) => page(t, broker, `page-${index}`, { '#': qos })))

const seenBy = (client: Peer) => publishes(client).map(({ payload }) => String(payload))
/** Waits for `value` and a PINGRESP behind it. Returns all received values. */
async function seenUntil(client: Peer, value: string): Promise<string[]> {
  while (!seenBy(client).includes(value)) await client.next('publish', publishes(client).length)
  await client.settled()
  return seenBy(client)
}

for (const qos of [0, 1] as const)
  t.test(
    `a subscriber has an event before the pages, although they were there first: QoS ${qos}`,
    async (t) => {
      const broker = await openPages(t)
      const all = await pages(t, broker, qos)
      const other = await subscriber(t, broker, 'other', { '#': 0 })
      for (const value of ['1', '2', '3']) {
        const got = other.next('publish', publishes(other).length)
        const distributed = broker.broker.distribute([messageOf(value)])
        await got
        const early = all.filter((each) => seenBy(each).includes(value)).length
        t.ok(early <= 16, `${early} of ${many} pages were earlier`)
        await distributed
        for (const each of all) t.equal((await seenUntil(each, value)).at(-1), value)
      }
    },
  )

for (const qos of [0, 1] as const)
  t.test(`an event for others does not wait for the pages of the event before: QoS ${qos}`, async (t) => {
    const broker = await openPages(t)
    const all = await pages(t, broker, qos)
    const other = await subscriber(t, broker, 'other', { '#': 0 })
    const distributed = Array.from({ length: 5 }, (_, index) =>
      broker.broker.distribute([messageOf(`${index}`)]),
    )
    await other.next('publish', 4)
    t.notOk(
      all.some((each) => seenBy(each).includes('4')),
      'no page has the last event yet',
    )
    await Promise.all(distributed)
    for (const each of all)
      t.same(await seenUntil(each, '4'), ['0', '1', '2', '3', '4'], 'each once, in order')
  })

t.test('a delivery ends when the last page has the event', async (t) => {
  const broker = await openBroker(t, { access: { authenticate: () => ofPage }, wrapStore: afterCommit })
  const all = await pages(t, broker, 1)
  await broker.broker.distribute([messageOf('1')])
  // The answer to a PINGREQ comes behind the event, if the event is sent.
  await Promise.all(all.map((each) => each.settled()))
  for (const each of all) t.same(seenBy(each), ['1'])
})

t.test('an acknowledgement does not wait for the pages of later events', async (t) => {
  const broker = await openBroker(t, { access: { authenticate: () => ofPage }, wrapStore: afterCommit })
  const all = await pages(t, broker, 1)
  const distributed = Array.from({ length: 5 }, (_, index) =>
    broker.broker.distribute([messageOf(`${index}`)]),
  )
  await distributed[0]
  t.notOk(all.some((each) => seenBy(each).includes('4')))
  await Promise.all(distributed)
  for (const each of all) await seenUntil(each, '4')
})

t.test('a delivery that began before the commit ends when the last page has the event', async (t) => {
  const broker = await openPages(t)
  const all = await pages(t, broker, 1)
  const messages = Array.from({ length: 100 }, (_, index) => messageOf(`${index}`, 1, `topic ${index}`))
  await broker.broker.distribute(messages)
  await Promise.all(all.map((each) => each.settled()))
  for (const each of all) t.equal(seenBy(each).length, 100)
})

t.test('a page that has just subscribed gets what waits for the other pages', async (t) => {
  const broker = await openPages(t)
  await pages(t, broker, 1)
  const late = await page(t, broker, 'page-late', { other: 1 })
  const distributed = Array.from({ length: 20 }, (_, index) => {
    const { retained, ...message } = messageOf(`${index}`)
    return broker.broker.distribute([message])
  })
  subscribe(late, 2, { '#': 1 })
  await Promise.all(distributed)
  t.equal((await seenUntil(late, '19')).at(-1), '19')
})

t.test('a page that subscribes meanwhile gets the newest value, and nothing older behind it', async (t) => {
  const broker = await openPages(t)
  await pages(t, broker, 1)
  for (const fields of [login, {}]) {
    const topic = 'username' in fields ? 'of a page' : 'of another'
    const late = await peer(t, broker, `page-late ${topic}`, fields)
    const distributed: Promise<void>[] = []
    for (const value of ['4', '5', '6', '7', '8', '9']) {
      distributed.push(broker.broker.distribute([messageOf(value, 1, topic)]))
      if (value === '4') subscribe(late, 1, { [topic]: 0 })
      await nextTurn()
    }
    await Promise.all(distributed)
    const seen = await seenUntil(late, '9')
    t.same(seen, [...new Set(seen)].sort(), topic)
  }
})

t.test('a page with several matching filters gets each message once', async (t) => {
  const broker = await openPages(t)
  const client = await page(t, broker, 'page-wide', { '#': 1, a: 0 })
  await broker.broker.distribute([messageOf('1')])
  broker.broker.announce([messageOf('2')])
  t.same(await seenUntil(client, '2'), ['1', '2'])
})

t.test('a page that has unsubscribed gets nothing more', async (t) => {
  const broker = await openPages(t)
  const client = await page(t, broker, 'page-leaving', { a: 0, b: 0 })
  client.send({ cmd: 'unsubscribe', messageId: 2, unsubscriptions: ['a'] })
  await client.next('unsuback')
  await broker.broker.distribute([messageOf('1'), messageOf('2', 1, 'b')])
  t.same(await seenUntil(client, '2'), ['2'])
})
