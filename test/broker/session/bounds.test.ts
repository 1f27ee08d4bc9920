import t from 'tap'
import type { Message } from '../../../event/message.ts'
import { type Peer, peer, publishes, subscribe, subscriber } from '../../conformance/peers.ts'
import type { PlainBroker } from '../../plain-broker.ts'
import {
  acknowledgeAll,
  leave,
  many,
  message,
  openHub,
  persistent,
  returning,
  title,
  withoutProgress,
} from './crashing-hub.ts'

/* More messages wait for a session than its limits allow or the journal keeps. */

const few = { maxOwed: 4, inFlightWindow: 1, maxInFlight: 4 }
const short = { windowBytes: 1, history: 0 }

t.test(
  'what goes out again after a crash has DUP, also where the journal is trimmed meanwhile',
  async (t) => {
    const { start, crash } = openHub(t)
    const limits = { ...few, ...short, queueLimit: 1 }
    const broker = await start({ wrapStore: withoutProgress, limits })
    const before = await subscriber(t, broker, 'c', { 'e/#': 1 }, persistent)
    acknowledgeAll(before)
    await broker.broker.distribute(many(6, 'e'))
    await before.next('publish', 5)
    await before.settled()
    crash()
    const after = await start({ limits })
    const client = await peer(t, after, 'c', persistent)
    await client.next('publish')
    await after.broker.distribute([message('e/new', '1')])
    await trim(after)
    acknowledgeAll(client)
    await client.next('publish', 6)
    t.same(
      publishes(client).map(({ topic, dup }) => [topic, dup]),
      [...Array.from({ length: 6 }, (_, n) => [`e/${n}`, true]), ['e/new', false]],
    )
  },
)

t.test(
  'who leaves before all has gone out again gets the rest at the next log-in, unconflated',
  async (t) => {
    const { start, crash } = openHub(t)
    const broker = await start({ wrapStore: withoutProgress, limits: few })
    const before = await subscriber(t, broker, 'c', { '#': 1 }, persistent)
    acknowledgeAll(before)
    for (let n = 0; n < 8; n++) await broker.broker.distribute([title(`title ${n}`, n)])
    await before.next('publish', 7)
    await before.settled()
    crash()
    const after = await start({ limits: few })
    const short = await peer(t, after, 'c', persistent)
    await short.next('publish')
    await leave(short)
    const client = await returning(t, after, 'c')
    await client.next('publish', 7)
    t.same(
      publishes(client).map(({ payload, dup }) => [`${payload}`, dup]),
      Array.from({ length: 8 }, (_, n) => [`title ${n}`, true]),
    )
  },
)

t.test('what was in flight at a crash comes again, however low the queue limit', async (t) => {
  const { start, crash } = openHub(t)
  const limits = { ...short, queueLimit: 2 }
  const broker = await start({ wrapStore: withoutProgress, limits })
  const before = await subscriber(t, broker, 'c', { '#': 1 }, persistent)
  await broker.broker.distribute(many(5, 'e'))
  await before.next('publish', 4)
  crash()
  const after = await start({ limits })
  await trim(after)
  const client = await returning(t, after, 'c')
  await client.next('publish', 4)
  t.same(packetIdsOf(client), packetIdsOf(before))
  t.ok(publishes(client).every(({ dup }) => dup))
})

for (const queueLimit of [2, few.maxOwed]) {
  t.test(`behind what goes out again, the newest ${queueLimit} come of what is new`, async (t) => {
    const { start, crash } = openHub(t)
    const limits = { ...few, queueLimit }
    const broker = await start({ wrapStore: withoutProgress, limits })
    const before = await subscriber(t, broker, 'c', { '#': 1 }, persistent)
    acknowledgeAll(before)
    await broker.broker.distribute(many(6, 'e'))
    await before.next('publish', 5)
    await before.settled()
    crash()
    const after = await start({ limits })
    await after.broker.distribute(many(queueLimit + 1, 'new'))
    const client = await returning(t, after, 'c')
    await client.next('publish', 5 + queueLimit)
    await client.settled()
    t.same(
      publishes(client).map(({ topic }) => topic),
      [...many(6, 'e'), ...many(queueLimit + 1, 'new').slice(1)].map(({ topic }) => topic),
    )
    t.match(await after.broker.session('c'), { dropped: 1 })
  })
}

for (const [what, waiting, came, dropped] of [
  [
    'what the journal removes before a slow client reads it is counted as one',
    [...many(3, 'kept'), title('old', 1), title('new', 2)],
    ['0', '1', '2', 'new'],
    1,
  ],
  ['nothing is counted where nothing is removed that the client has not read', [title('new', 2)], ['new'], 0],
] as const) {
  t.test(what, async (t) => {
    const { start } = openHub(t)
    const broker = await start({ limits: { ...few, ...short, inFlightWindow: few.maxInFlight } })
    const client = await subscriber(t, broker, 'c', { '#': 1 }, persistent)
    await broker.broker.distribute(many(few.maxInFlight, 'e'))
    await client.next('publish', few.maxInFlight - 1)
    for (const each of waiting) {
      await broker.broker.distribute([each])
      await broker.broker.trimming.sweep()
    }
    // The client reads on with half of its messages in flight. They take no room from those that wait.
    for (const { messageId = 0 } of publishes(client).slice(few.maxInFlight / 2))
      client.send({ cmd: 'puback', messageId })
    await client.next('publish', few.maxInFlight)
    acknowledgeAll(client)
    await client.next('publish', few.maxInFlight + came.length - 1)
    await client.settled()
    t.same(
      publishes(client).map(({ payload }) => `${payload}`),
      ['0', '1', '2', '3', ...came],
    )
    t.match(await broker.broker.session('c'), { dropped })
  })
}

t.test('what has expired takes no room from what is new', async (t) => {
  const clock = { now: Date.now() }
  const { start, crash } = openHub(t)
  const options = { limits: few, clock: () => clock.now }
  const broker = await start(options)
  const before = await subscriber(t, broker, 'c', { '#': 1 }, persistent)
  await broker.broker.distribute(Array.from({ length: 4 }, (_, n) => state(n, clock.now + 10_000)))
  await before.next('publish', 3)
  crash()
  clock.now += 11_000
  const after = await start(options)
  await after.broker.distribute([title('new', clock.now)])
  t.match(await after.broker.session('c'), { queued: 1, dropped: 0 })
  const client = await returning(t, after, 'c')
  t.match(await client.next('publish'), { payload: Buffer.from('new'), dup: false })
})

t.test('what is no longer kept takes no room either, and is counted', async (t) => {
  const { start } = openHub(t)
  const limits = { ...few, ...short, queueLimit: 3 }
  const broker = await start({ limits })
  await leave(await subscriber(t, broker, 'c', { '#': 1 }, persistent))
  await broker.broker.distribute([message('e', '1'), title('old', 1)])
  const held = await peer(t, broker, 'c', persistent)
  await held.next('publish')
  await leave(held)
  await broker.broker.distribute([title('new', 2), message('e', '2'), message('e', '3')])
  await trim(broker)
  const client = await returning(t, broker, 'c')
  await client.next('publish', 3)
  t.same(
    publishes(client).map(({ payload }) => `${payload}`),
    ['1', 'new', '2', '3'],
  )
  t.match(await broker.broker.session('c'), { dropped: 1 })
  const { values } = await broker.metrics.messagesDropped.get()
  t.match(
    values.filter(({ value }) => value > 0),
    [{ value: 1, labels: { reason: 'superseded' } }],
  )
})

t.test('a value that a SUBSCRIBE brought is not dropped first if the session gets it anyway', async (t) => {
  const { start } = openHub(t)
  const limits = { maxOwed: 8, inFlightWindow: 1, maxInFlight: 4, queueLimit: 2 }
  const broker = await start({ limits })
  const held = await subscriber(t, broker, 'c', { '#': 1 }, persistent)
  await broker.broker.distribute([...many(4, 'sent'), ...many(3, 'waits'), title('newest', 1)])
  await held.next('publish', 3)
  subscribe(held, 2, { 'radio/#': 1 })
  await held.next('suback', 1)
  await leave(held)
  const client = await returning(t, broker, 'c')
  await client.next('publish', 5)
  t.same(
    publishes(client).map(({ topic }) => topic),
    ['sent/0', 'sent/1', 'sent/2', 'sent/3', 'waits/2', 'radio/x/track'],
  )
})

t.test('a value that a SUBSCRIBE brought comes once after a crash, in its place', async (t) => {
  const { start, crash } = openHub(t)
  const limits = { ...few, maxInFlight: 2 }
  const broker = await start({ wrapStore: withoutProgress, limits })
  const held = await subscriber(t, broker, 'c', { '#': 1 }, persistent)
  await broker.broker.distribute([...many(5, 'e'), title('newest', 1)])
  await held.next('publish', 1)
  subscribe(held, 2, { '#': 1 })
  await held.next('suback', 1)
  crash()
  const after = await start({ limits })
  const client = await returning(t, after, 'c')
  await client.next('publish', 5)
  await after.broker.distribute([message('behind', '2')])
  await client.next('publish', 6)
  t.same(
    publishes(client).map(({ topic }) => topic),
    [...Array.from({ length: 5 }, (_, n) => `e/${n}`), 'radio/x/track', 'behind'],
  )
})

t.test('a QoS 2 message comes once, also where more goes out again than a session may be owed', async (t) => {
  const { start, crash } = openHub(t)
  const broker = await start({ wrapStore: withoutProgress, limits: few })
  const before = await subscriber(t, broker, 'c', { '#': 2 }, persistent)
  acknowledgeAll(before)
  await broker.broker.distribute(many(5, 'e'))
  await broker.broker.distribute([{ ...message('once', '1'), qos: 2 }])
  const { messageId = 0 } = await before.next('publish', 5)
  before.send({ cmd: 'pubrec', messageId })
  await before.next('pubrel')
  before.send({ cmd: 'pubcomp', messageId })
  await before.settled()
  crash()
  const after = await start({ limits: few })
  const client = await returning(t, after, 'c')
  await client.next('pubrel')
  client.send({ cmd: 'pubcomp', messageId })
  await client.next('publish', 4)
  await after.broker.distribute([message('behind', '2')])
  await client.next('publish', 5)
  t.same(
    publishes(client).map(({ topic }) => topic),
    [...Array.from({ length: 5 }, (_, n) => `e/${n}`), 'behind'],
  )
})

t.test('of a topic one retained value waits for a client, however often it subscribes', async (t) => {
  const { start } = openHub(t)
  const broker = await start({ limits: few })
  const client = await subscriber(t, broker, 'c', { '#': 1 }, persistent)
  await broker.broker.distribute(many(few.maxInFlight, 'e'))
  await client.next('publish', few.maxInFlight - 1)
  const rounds = 10
  for (let n = 0; n < rounds; n++) {
    await broker.broker.distribute([title(`title ${n}`, n)])
    // Each SUBSCRIBE brings the value by another filter than the one before.
    subscribe(client, n + 2, n % 2 === 0 ? { '#': 1 } : { 'radio/#': 1 })
    await client.next('suback', n + 1)
    t.match(await broker.broker.session('c'), { queued: few.maxInFlight + 1, inFlight: few.maxInFlight })
  }
  acknowledgeAll(client)
  await client.next('publish', few.maxInFlight + rounds)
  await client.settled()
  const titles = publishes(client).slice(few.maxInFlight)
  t.same(
    titles.filter(({ retain }) => retain).map(({ payload }) => `${payload}`),
    ['title 9'],
  )
  t.same(
    titles.filter(({ retain }) => !retain).map(({ payload }) => `${payload}`),
    Array.from({ length: rounds }, (_, n) => `title ${n}`),
    'and no live message is missing [MQTT-3.8.4-3]',
  )
})

/** Moves the window past all messages, and removes those that no rule keeps. */
async function trim(broker: PlainBroker): Promise<void> {
  for (let sweep = 0; sweep < 3; sweep++) {
    await broker.broker.distribute([{ ...message('behind', `${sweep}`), qos: 0 }])
    await broker.broker.trimming.sweep()
  }
  await broker.broker.trimming.sweep()
}

function packetIdsOf(client: Peer) {
  return publishes(client).map(({ messageId }) => messageId)
}

function state(n: number, expires: number): Message {
  return { ...message(`radio/x/control/${n}`, `${n}`), stream: 'x', queue: { keep: 'every', expires } }
}
