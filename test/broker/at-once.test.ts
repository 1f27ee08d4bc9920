import t from 'tap'
import { numbersTaken } from '../../store/commit.ts'
import type { Store } from '../../store/store.ts'
import { openBroker, peer, publish, publishes, subscriber, texts } from '../conformance/peers.ts'

/* Where nothing must be stored first, the broker sends messages and takes acknowledgements at once. */

/** A store whose commits, after `hold`, stay under way until the test calls `settle` for each. */
function createUnsureStore() {
  const settles: ((failed?: Error) => void)[] = []
  let holding = false
  let begins = true
  let last = 0
  return {
    wrap: (store: Store): Store => ({
      ...store,
      commit: async (changes, underway) => {
        const taken = numbersTaken(changes)
        last += taken
        if (!holding || !underway) return store.commit(changes)
        if (begins) underway(taken > 0 ? last - taken + 1 : 0)
        const failed = await new Promise<Error | undefined>((resolve) => settles.push(resolve))
        if (failed) throw failed
        return store.commit(changes)
      },
    }),
    /** `isTrusted`: false after a failed write, when no commit begins before it is stored. */
    hold(isTrusted = true): void {
      holding = true
      begins = isTrusted
    },
    settle: (failed?: Error) => settles.shift()?.(failed),
  }
}

t.test(
  'who has nothing stored gets a message while it is being stored, everybody else when it is safe',
  async (t) => {
    const store = createUnsureStore()
    const broker = await openBroker(t, { wrapStore: store.wrap })
    const live = await subscriber(t, broker, 'live', { '#': 1 })
    const kept = await subscriber(t, broker, 'kept', { a: 1 }, { clean: false })
    const publisher = await peer(t, broker, 'publisher')
    store.hold()
    publisher.send(publish('a', 1, 7))
    await live.next('publish')
    const late = await subscriber(t, broker, 'late', { a: 1 })
    await late.settled()
    await kept.settled()
    await publisher.settled()
    t.same(texts(kept), [], 'a persistent session waits')
    t.notOk(
      publisher.packets.some(({ cmd }) => cmd === 'puback'),
      'and so does the acknowledgement',
    )
    store.settle()
    await publisher.next('puback')
    await kept.next('publish')
    await live.settled()
    t.equal(publishes(live).length, 1, 'nobody gets it twice')
  },
)

t.test('what tells that something was stored waits until it is', async (t) => {
  const store = createUnsureStore()
  const broker = await openBroker(t, { wrapStore: store.wrap })
  const live = await subscriber(t, broker, 'live', { '#': 1 })
  store.hold()
  const message = { payload: Buffer.from('x'), qos: 1, queue: { keep: 'every' } } as const
  const retained = { slot: '', time: 1 }
  const distributed = broker.broker.distribute([
    { ...message, topic: 'event', retained },
    { ...message, topic: 'report', isReport: true },
  ])
  await live.next('publish')
  await live.settled()
  t.same(texts(live), ['event x'])
  store.settle()
  await distributed
  await live.settled()
  t.same(texts(live), ['event x', 'report x'])
})

t.test('an event that could go out at once waits for the one before it, unless that one fails', async (t) => {
  const store = createUnsureStore()
  const broker = await openBroker(t, { wrapStore: store.wrap })
  const live = await subscriber(t, broker, 'live', { '#': 1 })
  const distribute = (topic: string) =>
    broker.broker.distribute([{ topic, payload: Buffer.from(topic), qos: 1, queue: { keep: 'every' } }])
  store.hold(false)
  const first = distribute('first')
  store.hold()
  const second = distribute('second')
  await live.settled()
  t.same(texts(live), [])
  store.settle()
  store.settle()
  await Promise.all([first, second])
  await live.settled()
  t.same(texts(live), ['first first', 'second second'])

  store.hold(false)
  const failing = distribute('failing')
  store.settle(new Error('disk full'))
  await t.rejects(failing, /disk full/)
  store.hold()
  const last = distribute('last')
  await live.next('publish', 2)
  t.equal(texts(live).at(-1), 'last last')
  store.settle()
  await last
})

t.test('a disk that fails after it has taken a message: it is not acknowledged', async (t) => {
  const store = createUnsureStore()
  const broker = await openBroker(t, { wrapStore: store.wrap })
  const live = await subscriber(t, broker, 'live', { a: 0 })
  const kept = await subscriber(t, broker, 'kept', { a: 1 }, { clean: false })
  const publisher = await peer(t, broker, 'publisher')
  store.hold()
  publisher.send(publish('a', 1, 7))
  await live.next('publish')
  store.settle(new Error('disk full'))
  await publisher.closed()
  t.notOk(publisher.packets.some(({ cmd }) => cmd === 'puback'))
  await kept.settled()
  t.same(texts(kept), [])
  t.equal((await broker.broker.session('kept'))?.queued, 0)
})

t.test('what could not be stored is not retained', async (t) => {
  const store = createUnsureStore()
  const broker = await openBroker(t, { wrapStore: store.wrap })
  const distribute = (topic: string, text: string, time: number) =>
    broker.broker.distribute([
      {
        topic,
        payload: Buffer.from(text),
        qos: 1,
        queue: { keep: 'every' },
        retained: { slot: '', time },
      },
    ])
  await distribute('a', 'stored', 1)
  store.hold()
  for (const topic of ['a', 'b']) {
    const distributed = distribute(topic, 'not stored', 3)
    t.equal(String(broker.broker.retained.current(topic)?.payload), 'not stored')
    await Promise.resolve()
    store.settle(new Error('disk full'))
    await t.rejects(distributed, /disk full/)
  }
  t.equal(String(broker.broker.retained.current('a')?.payload), 'stored')
  t.equal(broker.broker.retained.current('b'), undefined)
  const again = distribute('a', 'older', 2)
  await Promise.resolve()
  store.settle()
  await again
  t.equal(String(broker.broker.retained.current('a')?.payload), 'older', 'as it is in the store')
})

t.test('acknowledgements are taken however they are cut, and whatever follows them', async (t) => {
  const broker = await openBroker(t)
  const client = await subscriber(t, broker, 'client', { a: 1 })
  const publisher = await peer(t, broker, 'publisher')
  for (const messageId of [1, 2, 3, 4]) publisher.send(publish('a', 1, messageId))
  await client.next('publish', 3)
  const ids = publishes(client).map(({ messageId = 0 }) => messageId)
  const inFlight = () => broker.broker.sessions.get('client')?.inFlight.size
  t.equal(inFlight(), 4)
  const acknowledgements = Buffer.concat(ids.map((id) => Buffer.of(0x40, 2, id >> 8, id & 0xff)))
  const bytes = Buffer.concat([acknowledgements, Buffer.of(0xc0, 0)])
  for (const [from, to] of [
    [0, 4],
    [4, 10],
    [10, 13],
    [13, bytes.length],
  ] as const) {
    client.send(bytes.subarray(from, to))
    // In the same turn, the socket would join this piece with the next one.
    await new Promise((resolve) => setImmediate(resolve))
  }
  await client.next('pingresp')
  t.equal(inFlight(), 0)
})

t.test('an acknowledgement of identifier 0 closes the connection, also behind good ones', async (t) => {
  const broker = await openBroker(t)
  const client = await subscriber(t, broker, 'client', { a: 1 })
  client.send(Buffer.of(0x40, 2, 0, 1, 0x40, 2, 0, 0, 0xc0, 0))
  await client.closed()
  t.notOk(client.packets.some(({ cmd }) => cmd === 'pingresp'))
})

t.test('nothing overtakes a large event that goes out in portions', async (t) => {
  const broker = await openBroker(t)
  const live = await subscriber(t, broker, 'live', { '#': 1 })
  const kept = await subscriber(t, broker, 'kept', { '#': 1 }, { clean: false })
  const topics = ['a', 'b', 'c', 'd', 'e', 'f']
  const distribute = (text: string) =>
    broker.broker.distribute(
      topics.map((topic) => ({
        topic,
        payload: Buffer.from(text),
        qos: 1,
        queue: { keep: 'every' },
        retained: { slot: '', time: 1 },
      })),
    )
  const large = 'x'.repeat(100_000)
  await Promise.all([distribute(large), distribute('second'), distribute('third')])
  for (const client of [live, kept]) {
    await client.next('publish', 3 * topics.length - 1)
    for (const each of topics) {
      const seen = publishes(client).flatMap(({ topic, payload }) =>
        topic === each ? [String(payload)] : [],
      )
      t.same(seen, [large, 'second', 'third'])
    }
  }
  for (const topic of topics) t.equal(String(broker.broker.retained.current(topic)?.payload), 'third')
})

t.test('a burst while the disk writes drops nothing of a client that reads', async (t) => {
  const broker = await openBroker(t, { limits: { outgoingBuffer: 1024 * 1024 } })
  const live = await subscriber(t, broker, 'live', { '#': 0 })
  const filler = '.'.repeat(100_000)
  const count = 120
  const distributed = Array.from({ length: count }, (_, nth) =>
    broker.broker.distribute([
      { topic: 'a', payload: Buffer.from(`${nth} ${filler}`), qos: 1, queue: { keep: 'every' } },
    ]),
  )
  await live.next('publish', count - 1)
  const seen = publishes(live).map(({ payload }) => Number.parseInt(String(payload), 10))
  t.same(
    seen,
    Array.from({ length: count }, (_, nth) => nth),
  )
  await Promise.all(distributed)
})

t.test('a topic that is cleared while something is published there shows what is stored', async (t) => {
  const broker = await openBroker(t)
  const { retained } = broker.broker
  const distribute = (text: string, size = 0) =>
    broker.broker.distribute([
      {
        topic: 'a',
        payload: Buffer.from(text + '.'.repeat(size)),
        qos: 1,
        queue: { keep: 'every' },
        retained: { slot: '', time: 1 },
      },
    ])
  for (const size of [0, 300_000]) {
    await distribute('before', size)
    await Promise.all([retained.clear('a'), distribute('after', size)])
    t.match(String(retained.current('a')?.payload), /^after/, `cleared first, ${size}`)
    await Promise.all([distribute('again', size), retained.clear('a')])
    t.equal(retained.current('a'), undefined, `cleared last, ${size}`)
    for await (const [key] of broker.store.range('retained/')) t.fail(`${key} is stored`)
  }
})

t.test('a topic that could not be cleared keeps its value', async (t) => {
  const store = createUnsureStore()
  const broker = await openBroker(t, { wrapStore: store.wrap })
  const { retained } = broker.broker
  const message = { topic: 'a', payload: Buffer.from('x'), qos: 1, queue: { keep: 'every' } } as const
  await broker.broker.distribute([{ ...message, retained: { slot: '', time: 1 } }])
  store.hold()
  const clearing = retained.clear('a')
  t.equal(retained.current('a'), undefined)
  await Promise.resolve()
  store.settle(new Error('disk full'))
  await t.rejects(clearing, /disk full/)
  t.equal(String(retained.current('a')?.payload), 'x')
})
