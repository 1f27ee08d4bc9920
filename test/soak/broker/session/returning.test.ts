import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Message } from '../../../../event/message.ts'
import type { Store } from '../../../../store/store.ts'
import { leave, many, message, openHub, returning } from '../../../broker/session/crashing-hub.ts'
import {
  openBroker,
  type Peer,
  peer,
  publish,
  publishes,
  subscribe,
  subscriber,
  texts,
} from '../../../conformance/peers.ts'
import type { PlainBroker } from '../../../plain-broker.ts'
import { until } from '../../../until.ts'

/* Returning sessions: cases that `test/broker/promises/` does not play. */

const persistent = { clean: false }

t.test('a message that 300 filters match comes once', async (t) => {
  const broker = await openBroker(t)
  const levels = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i']
  const filters = Array.from({ length: 300 }, (_, number) =>
    levels.map((level, place) => ((number >> place) % 2 === 1 ? '+' : level)).join('/'),
  )
  const wanted = Object.fromEntries(filters.map((filter) => [filter, 1] as const))
  const first = await subscriber(t, broker, 'c', wanted, persistent)
  const publisher = await peer(t, broker, 'p')
  const topic = levels.join('/')
  publisher.send(publish(topic, 1, 1))
  const { messageId = 0 } = await first.next('publish')
  first.send({ cmd: 'puback', messageId })
  await first.settled()
  first.socket.destroy()
  await first.closed()
  publisher.send(publish(topic, 1, 2))
  await publisher.next('puback', 1)
  const again = await peer(t, broker, 'c', persistent)
  await again.next('publish')
  await again.settled()
  t.equal(publishes(first).length, 1)
  t.equal(publishes(again).length, 1)
})

t.test('a session that the store has lost the positions of goes on from its head', async (t) => {
  const broker = await openBroker(t)
  const first = await subscriber(t, broker, 'c', { '#': 1 }, persistent)
  first.send({ cmd: 'disconnect' })
  await first.closed()
  const key = 'session/c'
  const read = async () => JSON.parse(String(await broker.store.get(key)))
  while ((await read()).node !== undefined) await nextTurn()
  const record = await read()
  const ahead = { ...record, upTo: 1e9, owed: [[1e9 - 1, 1, 2]], subscriptions: [['#', 1, 1e9]] }
  await broker.store.commit([{ put: key, value: JSON.stringify(ahead) }])
  const publisher = await peer(t, broker, 'p')
  const again = await peer(t, broker, 'c', persistent)
  publisher.send(publish('a', 1, 1))
  await again.next('publish')
  t.same(texts(again), ['a a'])
})

for (const [what, lost] of Object.entries({
  'it had got': { upTo: 1e9, owed: [1, 2].map((position) => [position, 1, 2]) },
  'it was to get all again to': { replay: 1e9 },
})) {
  t.test(`nothing is lost during a return, though the store has lost the position ${what}`, async (t) => {
    let accept: (() => Promise<unknown>) | undefined
    const broker = await openBroker(t, {
      limits: { queueLimit: 1 },
      // Whenever a return reads the journal, an event is accepted behind what it reads.
      wrapStore: (store) => ({
        ...store,
        async get(key) {
          if (key.startsWith('journal/')) await accept?.()
          return store.get(key)
        },
        async *range(prefix, bounds) {
          const found = []
          for await (const entry of store.range(prefix, bounds)) found.push(entry)
          if (prefix.startsWith('journal/')) await accept?.()
          yield* found
        },
      }),
    })
    const first = await subscriber(t, broker, 'c', { '#': 1 }, persistent)
    await leave(first)
    const read = async () => JSON.parse(String(await broker.store.get('session/c')))
    await until(async () => (await read()).node === undefined)
    await broker.store.commit([{ put: 'other/', value: '', numbered: { nth: 1, at: 'key' } }])
    await broker.broker.distribute([message('before', '')])
    await broker.store.commit([
      { put: 'session/c', value: JSON.stringify({ ...(await read()), upTo: 3, ...lost }) },
    ])
    accept = () => {
      accept = undefined
      return broker.broker.distribute([message('meanwhile', '')])
    }
    const again = await returning(t, broker, 'c')
    await accept?.()
    t.match(await again.next('publish'), { topic: 'meanwhile', dup: false })
  })
}

t.test(
  'who leaves an identifier unacknowledged that comes again is cut off as slow',
  { timeout: 120_000 },
  async (t) => {
    const broker = await openBroker(t)
    const client = await subscriber(t, broker, 'c', { '#': 1 }, persistent)
    const publisher = await peer(t, broker, 'p')
    publisher.send(publish('first', 1, 1))
    const { messageId } = await client.next('publish')
    // A message 65,535 positions later has the same packet identifier.
    const apart = 65_535
    await broker.store.commit([{ put: 'other/', value: '', numbered: { nth: apart - 2, at: 'key' } }])
    publisher.send(publish('second', 1, 2), publish('third', 1, 3))
    await publisher.next('puback', 2)
    await client.settled()
    t.same(texts(client), ['first first'], 'the others wait')
    await client.closed()
    t.match(
      broker.lines.find(({ reason }) => reason === 'slow'),
      { detail: `message ${messageId} not acknowledged` },
    )
    const again = await peer(t, broker, 'c', persistent)
    t.match(await again.next('publish'), { topic: 'first', dup: true, messageId })
    again.send({ cmd: 'puback', messageId: messageId ?? 0 })
    t.match(await again.next('publish', 1), { topic: 'second', messageId })
    t.match(await again.next('publish', 2), { topic: 'third' })
  },
)

t.test('of more than a session may be owed, values of a SUBSCRIBE go first, and are counted', async (t) => {
  const broker = await openBroker(t)
  const publisher = await peer(t, broker, 'p')
  const values = Array.from({ length: 1_100 }, (_, n) => publish(`r/${n}`, 1, n + 1, { retain: true }))
  publisher.send(...values)
  await publisher.next('puback', values.length - 1)
  const first = await subscriber(t, broker, 'c', { 'c/#': 1 }, persistent)
  first.send({ cmd: 'disconnect' })
  await first.closed()
  const events = Array.from({ length: 150 }, (_, n) => publish(`c/${n}`, 1, 2_000 + n, { retain: true }))
  publisher.send(...events)
  await publisher.next('puback', values.length + events.length - 1)
  const again = await peer(t, broker, 'c', persistent)
  await again.next('publish', 99)
  // The session is owed the messages of `c/` already, so the SUBSCRIBE brings only the values of `r/`.
  subscribe(again, 1, { 'r/#': 1, 'c/#': 1 })
  await again.next('suback')
  again.send({ cmd: 'disconnect' })
  await again.closed()
  const session = () => broker.broker.session('c')
  // Until the node has stored the end of the connection, `inFlight` counts all owed messages.
  await until(async () => (await session())?.inFlight === 100)
  t.match(await session(), { connected: false, queued: 1_000, inFlight: 100, dropped: 250 })
  const last = await acknowledging(t, broker, 1_000)
  const topics = publishes(last).map(({ topic }) => topic)
  t.same(
    topics.filter((topic) => topic.startsWith('c/')),
    events.map(({ topic }) => topic),
  )
  t.equal(topics.filter((topic) => topic.startsWith('r/')).length, 850)
})

for (const [count, what] of [
  [1_000, '1,000 valid control events of a livestream come, all of them, in order'],
  [1_010, 'of more than HUB_QUEUE_LIMIT control events of a livestream the newest come'],
] as const) {
  t.test(what, async (t) => {
    const clock = { now: Date.now() }
    // With these limits, only the rule for control events keeps the events in the journal.
    const limits = { queueLimit: 1_000, history: 0, windowBytes: 1 }
    const broker = await openBroker(t, { limits, clock: () => clock.now })
    const first = await subscriber(t, broker, 'c', { 'radio/#': 1 }, persistent)
    first.send({ cmd: 'disconnect' })
    await first.closed()
    const state = (n: number, expires: number): Message => ({
      topic: 'radio/x/control',
      stream: 'x',
      payload: Buffer.from(`${n}`),
      qos: 1,
      retained: { slot: `${n % 10}`, time: n, expires },
      queue: { keep: 'every', time: n, expires },
    })
    await broker.broker.distribute([state(-1, clock.now + 1_000)])
    for (let n = 0; n < count; n += 10) {
      const tenth = Array.from({ length: 10 }, (_, nth) => state(n + nth, clock.now + 60_000))
      await broker.broker.distribute(tenth)
    }
    clock.now += 2_000
    const behind: Message = { topic: 'y', payload: Buffer.from(''), qos: 0, queue: { keep: 'every' } }
    for (let sweep = 0; sweep < 3; sweep++) {
      await broker.broker.trimming.sweep()
      await broker.broker.distribute([behind])
    }
    await broker.broker.trimming.sweep()
    const again = await acknowledging(t, broker, 1_000)
    const newest = Array.from({ length: 1_000 }, (_, n) => `${count - 1_000 + n}`)
    t.same(
      publishes(again).map(({ payload }) => `${payload}`),
      newest,
    )
  })
}

t.test('a clock that is set back brings nothing again that was acknowledged before a crash', async (t) => {
  const clock = { now: Date.now() }
  const options = { clock: () => clock.now }
  const { start, crash } = openHub(t)
  const first = await start(options)
  await subscriber(t, first, 'c', { '#': 1 }, persistent)
  crash()
  clock.now -= 3_600_000
  const progress = watchProgress()
  const second = await start({ ...options, wrapStore: progress.wrapStore })
  const client = await returning(t, second, 'c')
  await second.broker.distribute(many(3, 'e'))
  await client.next('publish', 2)
  await client.settled()
  await until(async () => progress.last().startsWith('{"upTo":3,"unsettled":{}'))
  crash()
  const third = await start(options)
  const again = await returning(t, third, 'c')
  await third.broker.distribute([message('new', '4')])
  t.match(await again.next('publish'), { topic: 'new' })
})

for (const maxListed of [0, 50_000]) {
  t.test(
    `nothing acknowledged comes again after a crash, if a value lists ${maxListed} messages`,
    async (t) => {
      const { start, crash } = openHub(t)
      const progress = watchProgress()
      const broker = await start({ wrapStore: progress.wrapStore, limits: { maxListed } })
      // A client id can be the name of a property that objects inherit.
      const clientIds = ['c', '__proto__', 'constructor']
      const clients = []
      for (const clientId of clientIds) {
        const client = await subscriber(t, broker, clientId, { '#': 1 }, persistent)
        clients.push(client)
      }
      await broker.broker.distribute(many(3, 'acknowledged'))
      for (const client of clients) {
        await client.next('publish', 2)
        for (const { messageId = 0 } of publishes(client)) client.send({ cmd: 'puback', messageId })
        await client.settled()
      }
      await broker.broker.distribute(many(3, 'owed'))
      for (const client of clients) await client.next('publish', 5)
      const isStored = (clientId: string) => progress.last().includes(`"${clientId}":`)
      await until(() => clientIds.every(isStored))
      crash()
      const after = await start()
      for (const clientId of clientIds) {
        const again = await returning(t, after, clientId)
        await again.next('publish', 2)
        await again.settled()
        t.same(
          publishes(again).map(({ topic, dup }) => [topic, dup]),
          [0, 1, 2].map((nth) => [`owed/${nth}`, true]),
          clientId,
        )
      }
    },
  )
}

t.test('a clock that is set back while a client is away keeps nothing from it', async (t) => {
  let now = Date.now()
  const hour = 3_600_000
  const broker = await openBroker(t, {
    clock: () => now,
    rulesOf: ({ topic }) => ({
      queue: { keep: topic === 'latest' ? 'latest' : 'every' },
    }),
  })
  const first = await subscriber(t, broker, 'c', { '#': 1 }, persistent)
  first.send({ cmd: 'disconnect' })
  await first.closed()
  const publisher = await peer(t, broker, 'p')
  publisher.send(publish('a', 1, 1), publish('latest', 1, 2, { payload: 'before', retain: true }))
  await publisher.next('puback', 1)
  now -= hour
  publisher.send(publish('b', 1, 3), publish('latest', 1, 4, { payload: 'after', retain: true }))
  await publisher.next('puback', 3)
  await broker.broker.trimming.sweep()
  const again = await acknowledging(t, broker, 3)
  t.same(texts(again), ['a a', 'b b', 'latest after'])
})

/** Brings the client of session `c` back. It receives and acknowledges `count` messages. */
async function acknowledging(t: Test, broker: PlainBroker, count: number): Promise<Peer> {
  const client = await peer(t, broker, 'c', persistent)
  for (let index = 0; index < count; index++) {
    const { messageId = 0 } = await client.next('publish', index)
    client.send({ cmd: 'puback', messageId })
  }
  await client.settled()
  return client
}

/** Notes the progress that a node stored last, as JSON without its version. */
function watchProgress() {
  let last = ''
  return {
    last: () => last,
    wrapStore: (store: Store): Store => ({
      ...store,
      async commit(changes, underway) {
        const first = await store.commit(changes, underway)
        for (const change of changes) {
          if (!('put' in change) || !change.put.startsWith('progress/')) continue
          const { version: _version, ...rest } = JSON.parse(change.value.toString())
          last = JSON.stringify(rest)
        }
        return first
      },
    }),
  }
}
