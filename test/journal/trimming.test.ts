import { join } from 'node:path'
import pino from 'pino'
import t from 'tap'
import type { Message } from '../../event/message.ts'
import { positionIn } from '../../journal/entry.ts'
import { maxAgeMs } from '../../journal/keeping.ts'
import { digitsOf } from '../../store/commit.ts'
import { createMembership } from '../../store/nodes/membership.ts'
import { createOnlyNode } from '../../store/nodes/nodes.ts'
import type { Store } from '../../store/store.ts'
import { openBroker, openFailing, type Peer, peer, subscriber, texts } from '../conformance/peers.ts'
import { type PlainBroker, startPlainBroker } from '../plain-broker.ts'
import { createSharedSpace, settled } from '../shared-store.ts'
import { until } from '../until.ts'

const limits = { history: 2, queueLimit: 3, windowBytes: 1 }
const persistent = { clean: false }

/** An event of a livestream. */
function event(stream: string, fields: Partial<Message> = {}): Message {
  const track = { topic: `radio/${stream}/track`, stream, payload: Buffer.from(stream), qos: 1 as const }
  return { ...track, queue: { keep: 'latest' }, ...fields }
}

const retained = (stream: string, time = Date.now()) => event(stream, { retained: { slot: '', time } })
const control = (stream: string, expires: number) =>
  event(stream, { topic: `radio/${stream}/control`, queue: { keep: 'every', expires } })

async function send({ broker }: Pick<PlainBroker, 'broker'>, ...messages: Message[]): Promise<void> {
  for (const message of messages) await broker.distribute([message])
}

/** Sends one more event, and sweeps until all earlier messages have left the window. */
async function sweep({ broker }: Pick<PlainBroker, 'broker'>, count = 4): Promise<void> {
  await broker.trimming.sweep()
  await send({ broker }, event('other'))
  for (let time = 0; time < count; time++) {
    await broker.retained.sweep()
    await broker.trimming.sweep()
  }
}

/** The kept positions, without stream `other`. Throws if the index and the journal differ. */
async function kept(store: Store): Promise<number[]> {
  const indexed: number[] = []
  for (const prefix of ['latest/', 'every/'])
    for await (const [key] of store.range(prefix)) indexed.push(positionIn(key))
  const positions: number[] = []
  const others = new Set<number>()
  for await (const [key] of store.range('latest/other/')) others.add(positionIn(key))
  for await (const [key] of store.range('journal/')) positions.push(positionIn(key))
  if (indexed.sort((a, b) => a - b).join() !== positions.join())
    throw new Error('the index does not name what is kept')
  return positions.filter((position) => !others.has(position))
}

const events = (stream: string, count: number) => Array.from({ length: count }, () => event(stream))

t.test('of a livestream the newest events are kept, and what is retained', async (t) => {
  const broker = await openBroker(t, { limits })
  await send(broker, retained('a'), ...events('a', 4), ...events('b', 2))
  t.same(await kept(broker.store), [1, 2, 3, 4, 5, 6, 7], 'nothing happens before a sweep')
  await sweep(broker)
  t.same(await kept(broker.store), [1, 4, 5, 6, 7])
  await send(broker, retained('a'))
  await sweep(broker)
  t.same(await kept(broker.store), [5, 6, 7, 9], 'what it has replaced goes')
  await broker.broker.retained.clear('radio/a/track')
  await send(broker, ...events('a', 2))
  await sweep(broker)
  t.equal((await kept(broker.store)).includes(9), false)
})

t.test('a stream is trimmed however many messages it keeps', async (t) => {
  /** Adds to stream `b` as many index entries as a livestream may keep in seven days. */
  const wrapStore = (store: Store): Store => ({
    ...store,
    async *range(prefix, bounds) {
      yield* store.range(prefix, bounds)
      if (prefix !== 'latest/b/' || bounds?.before === undefined) return
      for await (const [, value] of store.range('latest/a/', { most: 1 }))
        for (let nth = 1; nth <= 130_000; nth++) yield [`${prefix}${digitsOf(nth)}`, value]
    },
  })
  const broker = await openBroker(t, { limits: { ...limits, history: 500_000 }, wrapStore })
  await send(broker, event('a'), ...events('b', 4))
  await sweep(broker, 1)
  t.ok(broker.broker.journal.floor() > 1)
})

t.test('the window keeps the newest of all streams', async (t) => {
  const broker = await openBroker(t, { limits: { ...limits, windowBytes: 100_000 } })
  await send(broker, ...events('a', 10))
  await sweep(broker)
  t.equal((await kept(broker.store)).length, 10)
  t.equal(broker.broker.journal.floor(), 1)
})

t.test('control events are kept until their end, and no session gets them afterwards', async (t) => {
  const time = { now: Date.now() }
  const broker = await openBroker(t, { limits: { ...limits, history: 0 }, clock: () => time.now })
  await send(
    broker,
    ...Array.from({ length: 5 }, () => control('a', time.now + 1000)),
    control('a', time.now + 2000),
  )
  await sweep(broker)
  t.same(await kept(broker.store), [4, 5, 6])
  time.now += 1000
  await sweep(broker)
  t.same(await kept(broker.store), [6])
  time.now += 1000
  await sweep(broker)
  t.same(await kept(broker.store), [])
})

t.test('nothing is kept for longer than seven days but what is retained', async (t) => {
  const time = { now: Date.now() }
  const broker = await openBroker(t, { limits: { ...limits, windowBytes: 100_000 }, clock: () => time.now })
  await send(broker, retained('a'), event('a'), control('a', time.now + 2 * maxAgeMs))
  await sweep(broker)
  time.now += maxAgeMs
  await sweep(broker)
  t.same(await kept(broker.store), [1])
})

t.test('a payload stays as long as one of the messages that share it', async (t) => {
  const broker = await openBroker(t, { limits })
  const payload = Buffer.from('shared')
  await broker.broker.distribute(['a', 'b', 'c'].map((stream) => event(stream, { payload })))
  await send(broker, ...events('a', 2), ...events('b', 2))
  await sweep(broker)
  t.same(await kept(broker.store), [1, 3, 4, 5, 6, 7])
  t.equal((await broker.broker.journal.get(3))?.payload.toString(), 'shared')
  await send(broker, ...events('c', 2))
  await sweep(broker)
  t.same(await kept(broker.store), [4, 5, 6, 7, 9, 10])
})

t.test('what a queue refers to is kept as long as it does, and its payload with it', async (t) => {
  const broker = await openBroker(t, { limits: { ...limits, history: 0 } })
  const { journal } = broker.broker
  const payload = Buffer.from('shared')
  await broker.broker.distribute(['a', 'b'].map((stream) => event(stream, { payload })))
  await send(broker, ...events('a', 2), ...events('b', 2))
  for (const position of [2, 4, 4]) journal.neededByQueues.add(position)
  await sweep(broker)
  t.same(await kept(broker.store), [1, 2, 4])
  t.equal((await journal.get(2))?.payload.toString(), 'shared')
  for (const position of [2, 4]) journal.neededByQueues.remove(position)
  await sweep(broker)
  t.same(await kept(broker.store), [4])
  journal.neededByQueues.remove(4)
  await sweep(broker)
  t.same(await kept(broker.store), [])
})

t.test('what is kept only because it is named takes no room from the history', async (t) => {
  const broker = await openBroker(t, { limits: { ...limits, historyBytes: 6_000 } })
  const large = (stream: string) => event(stream, { payload: Buffer.alloc(1_000) })
  await send(broker, ...Array.from('bbaaaaaaaa', large))
  for (let position = 3; position <= 10; position++) broker.broker.journal.neededByQueues.add(position)
  await sweep(broker, 6)
  t.same(await kept(broker.store), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
})

t.test('livestreams with much history do not push away that of others', async (t) => {
  const broker = await openBroker(t, { limits: { ...limits, history: 1_000, historyBytes: 100_000 } })
  const large = (_: unknown, nth: number) => event(`large-${nth % 4}`, { payload: Buffer.alloc(1_000) })
  await send(broker, ...events('small', 10))
  for (let time = 0; time < 30; time++) {
    await broker.broker.distribute(Array.from({ length: 4 }, large))
    await broker.broker.trimming.sweep()
  }
  await sweep(broker)
  const all = await kept(broker.store)
  t.same(all.slice(0, 10), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  t.ok(all.length > 50 && all.length < 95, `${all.length - 10} of 120 large ones are kept`)
})

t.test('of too many bytes of history the oldest go first, whatever was counted before', async (t) => {
  const broker = await openBroker(t, { limits: { ...limits, history: 100, historyBytes: 3_000 } })
  const large = (stream: string) => event(stream, { payload: Buffer.alloc(1_000) })
  await send(broker, large('a'), large('b'), large('a'), large('b'))
  await sweep(broker)
  t.same(await kept(broker.store), [3, 4])
  const key = 'trimming/state'
  for (const wrong of [0, 1_000_000]) {
    const state = JSON.parse(String(await broker.store.get(key)))
    await broker.store.commit([{ put: key, value: JSON.stringify({ ...state, historyBytes: wrong }) }])
    await send(broker, large('a'), large('b'), large('b'))
    await sweep(broker, 6)
    t.ok((await kept(broker.store)).length <= 2, `${wrong}`)
  }
  const head = broker.broker.journal.head()
  await send(broker, ...events('c', 2), ...events('d', 2))
  await sweep(broker, 6)
  const newest = (await kept(broker.store)).filter((position) => position > head)
  t.equal(newest.length, 4, 'the count is right again')
})

t.test('a store that fails changes nothing but when it happens', async (t) => {
  const { store, broker } = await openFailing(t, { limits })
  await send(broker, retained('a'), ...events('a', 4), ...events('b', 3))
  for (const place of ['journal/', 'trimming/']) {
    store.fail((changes) =>
      changes.some(
        (change) =>
          ('del' in change ? change.del : 'put' in change ? change.put : '').startsWith(place) &&
          !('numbered' in change),
      ),
    )
    await t.rejects(sweep(broker))
    store.heal()
  }
  await sweep(broker)
  t.same(await kept(broker.store), [1, 4, 5, 7, 8])
})

t.test('a value that comes back because its successor was not stored still has its message', async (t) => {
  let fail: ((error: Error) => void) | undefined
  let isFailing = false
  const wrapStore = (store: Store): Store => ({
    ...store,
    async commit(changes, underway) {
      if (!isFailing || !changes.some((change) => 'numbered' in change))
        return store.commit(changes, underway)
      underway?.(1 + (await store.lastNumber()))
      return new Promise((_, reject) => {
        fail = reject
      })
    },
  })
  const broker = await openBroker(t, { limits: { ...limits, history: 0 }, wrapStore })
  await send(broker, retained('a', 1))
  await sweep(broker)
  isFailing = true
  const failing = broker.broker.distribute([retained('a', 2)])
  await until(() => broker.broker.retained.current('radio/a/track')?.position !== 1)
  for (let time = 0; time < 4; time++) await broker.broker.trimming.sweep()
  fail?.(new Error('disk full'))
  await t.rejects(failing)
  t.same(await kept(broker.store), [1])
  t.equal(broker.broker.retained.current('radio/a/track')?.position, 1)
})

t.test('with all history gone, positions rise over a restart', async (t) => {
  const directory = t.testdir()
  const open = () => startPlainBroker({ directory, limits: { ...limits, history: 0 } })
  let broker = await open()
  await send(broker, ...events('a', 5))
  await sweep(broker)
  t.same(await kept(broker.store), [])
  const floor = broker.broker.journal.floor()
  t.equal(floor, 6, 'the last message is in the window')
  await broker.close()

  broker = await open()
  t.equal(broker.broker.journal.floor(), floor)
  await send(broker, event('a'))
  t.same(await kept(broker.store), [7])
  await sweep(broker)
  t.same(await kept(broker.store), [])
  await broker.close()
})

t.test('a connected session that falls behind gets what one gets that returns', async (t) => {
  const broker = await openBroker(t, { limits: { ...limits, queueLimit: 200 } })
  const slow = await subscriber(t, broker, 'slow', { '#': 1 }, persistent)
  const first = Array.from({ length: 1_000 }, (_, nth) => event(`s${nth % 10}`))
  await send(broker, ...first)
  await send(broker, retained('a', 1), retained('a', 2), control('a', Date.now() + 3_600_000), event('b'))
  await sweep(broker)
  await slow.next('publish', 999)
  const before = texts(slow).length
  acknowledge(slow)
  await until(() => texts(slow).includes('radio/other/track other'))
  acknowledge(slow)
  t.same(texts(slow).slice(before), ['radio/a/track a', 'radio/a/control a', 'radio/other/track other'])
  const { values } = await broker.metrics.messagesDropped.get()
  t.match(
    values.find(({ labels }) => labels.reason === 'superseded'),
    { value: 1 },
  )
  await send(broker, event('live'))
  await until(() => texts(slow).includes('radio/live/track live'))
})

t.test('one of several nodes removes, and all know from where on everything is kept', async (t) => {
  const space = createSharedSpace()
  const directory = t.testdir()
  const log = pino({ level: 'silent' })
  const start = async (name: string) => {
    const store = space.openFollowed(t)
    const idFile = join(directory, name)
    const nodes = await createMembership({ store, name, idFile, log, onGap: (reason) => t.error(reason) })
    const broker = await openBroker(t, { node: { store, nodes }, limits: { ...limits, history: 0 } })
    await nodes.join()
    t.teardown(() => nodes.leave())
    return { ...broker, store, nodes }
  }
  const [a, b] = [await start('a'), await start('b')]
  await send(a, event('a'), retained('a'), control('b', Date.now() + 3_600_000), ...events('b', 5))
  for (const node of [a, b, a, b]) {
    await sweep(node)
    await settled(a.store, b.store)
  }
  const floor = a.broker.journal.floor()
  t.ok(floor > 8)
  t.equal(b.broker.journal.floor(), floor)
  t.same(await kept(b.store), [2, 3])
  const [other] = [a, b].filter(({ nodes }) => !nodes.isLeader())
  if (!other) throw new Error('both lead')
  await send(other, ...events('b', 5))
  await sweep(other)
  t.equal(other.broker.journal.floor(), floor, 'the other node removes nothing')
})

t.test('after a crash a session gets again what is kept', async (t) => {
  const space = createSharedSpace()
  const start = async () => {
    const store = space.openFollowed(t)
    const broker = await openBroker(t, {
      node: { store, nodes: createOnlyNode('test') },
      limits,
    })
    store.start()
    return { ...broker, store }
  }
  const before = await start()
  const listener = await subscriber(t, before, 'listener', { '#': 1 }, persistent)
  await send(before, event('a'), retained('a'), event('b'), control('c', Date.now() + 3_600_000))
  await listener.next('publish', 3)
  await sweep(before)
  t.same(await kept(before.store), [1, 2, 3, 4])
  before.store.cut()

  const after = await start()
  const again = await peer(t, after, 'listener', persistent)
  await until(() => texts(again).includes('radio/other/track other'))
  t.same(texts(again), ['radio/a/track a', 'radio/c/control c', 'radio/other/track other'])
  t.ok(again.packets.every((packet) => packet.cmd !== 'publish' || packet.dup))
})

/** Acknowledges all messages that the client has received. */
function acknowledge(client: Peer): void {
  const ids = client.packets.flatMap((packet) =>
    packet.cmd === 'publish' && packet.messageId ? [packet.messageId] : [],
  )
  for (const messageId of ids) client.send({ cmd: 'puback', messageId })
}

t.test('what a dead webhook holds back is not read again and again', async (t) => {
  const broker = await openBroker(t, { limits, wrapStore: countReads })
  const { journal } = broker.broker
  const held = Array.from({ length: 200 }, (_, index) => index + 1)
  await send(broker, ...events('a', held.length), retained('a'), ...events('a', 3))
  for (const position of held) journal.neededByQueues.add(position)
  await sweep(broker)
  const before = readsOf(broker.store)
  await send(broker, event('a'))
  await sweep(broker)
  t.ok(readsOf(broker.store) - before < 100, `${readsOf(broker.store) - before} entries were read`)
  for (const position of [1, 100, 200]) journal.neededByQueues.remove(position)
  await sweep(broker)
  t.same(
    (await kept(broker.store)).slice(0, held.length - 3),
    held.filter((position) => ![1, 100, 200].includes(position)),
    'what it lets go of is removed',
  )
  for (const position of held) journal.neededByQueues.remove(position)
  await sweep(broker)
  t.equal((await kept(broker.store))[0], held.length + 1, 'also where that is much at once')
})

const reads = new WeakMap<Store, { count: number }>()
const readsOf = (store: Store) => reads.get(store)?.count ?? 0

/** A store that counts the entries that are read from its ranges. */
function countReads(inner: Store): Store {
  const counter = { count: 0 }
  const store: Store = {
    ...inner,
    async *range(prefix, bounds) {
      for await (const entry of inner.range(prefix, bounds)) {
        counter.count++
        yield entry
      }
    },
  }
  reads.set(store, counter)
  return store
}
