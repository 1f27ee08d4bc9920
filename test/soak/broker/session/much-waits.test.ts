import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import type { Message } from '../../../../event/message.ts'
import type { Store } from '../../../../store/store.ts'
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
} from '../../../broker/session/crashing-hub.ts'
import { collectGarbage } from '../../../collect-garbage.ts'
import { openBroker, peer, publishes, subscriber } from '../../../conformance/peers.ts'
import { rawClient } from '../../../raw-client.ts'

/* What a session gets when many messages wait for it, or large ones. */

t.test('large messages reach a client that comes back, in one connection', async (t) => {
  const { start } = openHub(t)
  const broker = await start({ limits: { outgoingBuffer: 1024 * 1024 } })
  await leave(await subscriber(t, broker, 'c', { '#': 1 }, persistent))
  const large = 'x'.repeat(400_000)
  for (let n = 0; n < 40; n++) await broker.broker.distribute([message(`e/${n}`, large)])
  const client = await returning(t, broker, 'c')
  await client.next('publish', 39)
  t.same(
    publishes(client).map(({ topic }) => topic),
    Array.from({ length: 40 }, (_, n) => `e/${n}`),
  )
})

t.test('clients that come back to large events and read slowly do not fill the node', async (t) => {
  const broker = await openBroker(t, { limits: { outgoingBuffer: 1024 * 1024 } })
  const names = Array.from({ length: 6 }, (_, n) => `c${n}`)
  for (const name of names) await leave(await subscriber(t, broker, name, { 'radio/#': 1 }, persistent))
  const large = 'x'.repeat(400_000)
  const livestreams = 50
  for (let n = 0; n < livestreams; n++) {
    await broker.broker.distribute([
      { ...title(`${n} ${large}`, n), topic: `radio/${n}/track`, stream: `${n}` },
    ])
  }
  const before = bytesInUse()
  const waiting = []
  for (const name of names) {
    const client = await peer(t, broker, name, persistent)
    client.socket.pause()
    waiting.push(client)
  }
  let most = 0
  for (const [index, client] of waiting.entries()) {
    acknowledgeAll(client)
    client.socket.resume()
    await client.next('publish', livestreams - 1)
    const received = publishes(client).map(({ topic, payload }) => [topic, payload.length])
    t.same(
      received,
      Array.from({ length: livestreams }, (_, n) => [`radio/${n}/track`, `${n} ${large}`.length]),
    )
    client.packets.length = 0
    if (index < waiting.length / 2) most = Math.max(most, bytesInUse() - before)
    const { dropped } = (await broker.broker.session(`c${index}`)) ?? {}
    t.equal(dropped, 0)
  }
  // All waiting messages together would be 20 MB for each client.
  t.ok(most < 45 * 1024 * 1024, `${Math.round(most / 1024 / 1024)} MiB`)
})

t.test('after a crash with more than a session may be owed', async (t) => {
  const { start, crash } = openHub(t)
  const broker = await start({ wrapStore: withoutProgress })
  const before = await subscriber(t, broker, 'c', { '#': 1 }, persistent)
  acknowledgeAll(before)
  for (let round = 0; round < 3; round++) {
    await broker.broker.distribute(many(450, `e/${round}`))
    await before.next('publish', 450 * (round + 1) - 1)
  }
  await before.settled()
  crash()
  const after = await start()
  for (let n = 0; n < 300; n++) await after.broker.distribute([title(`title ${n}`, n)])
  t.match(await after.broker.session('c'), { queued: 1_351, inFlight: 1_350 })
  const client = await returning(t, after, 'c')
  await client.next('publish', 1_350)
  await client.settled()
  const got = publishes(client)
  t.equal(got.filter(({ dup }) => dup).length, 1_350, 'everything comes again, with DUP')
  t.same(
    got.flatMap(({ topic, payload }) => (topic === 'radio/x/track' ? [`${payload}`] : [])),
    ['title 299'],
    'of what came since the newest title',
  )
  await after.broker.distribute([message('live', '1')])
  t.match(await client.next('publish', 1_351), { topic: 'live', dup: false })
})

t.test('what was in flight at a crash comes again, however much is accepted since', async (t) => {
  const { start, crash } = openHub(t)
  const broker = await start({ limits: { queueLimit: 1_000 } })
  await leave(await subscriber(t, broker, 'c', { '#': 1 }, persistent))
  await broker.broker.distribute(many(800, 'a'))
  const before = await peer(t, broker, 'c', persistent)
  await before.next('publish', 99)
  const sent = publishes(before).map(({ messageId }) => messageId)
  crash()
  const after = await start({ limits: { queueLimit: 1_000 } })
  await after.broker.distribute(many(400, 'b'))
  const client = await returning(t, after, 'c')
  await client.next('publish', 999)
  await client.settled()
  const again = new Set(publishes(client).map(({ messageId }) => messageId))
  t.ok(
    sent.every((packetId) => again.has(packetId)),
    'under their identifiers',
  )
  t.match(await after.broker.session('c'), { dropped: 200 }, 'the oldest that were never sent are dropped')
})

t.test('values of a SUBSCRIBE beyond the bound of a record', async (t) => {
  const { start, crash } = openHub(t)
  const broker = await start()
  const values = many(1_500, 'r').map((each) => ({ ...each, retained: { slot: '', time: 1 } }))
  await broker.broker.distribute(values.map((each) => ({ ...each, queue: { keep: 'latest' } })))
  const before = await subscriber(t, broker, 'c', { '#': 1 }, persistent)
  await before.next('publish', 99)
  const sent = publishes(before).map(({ messageId }) => messageId)
  crash()
  const after = await start()
  t.match(
    await after.broker.session('c'),
    { queued: 1_000, dropped: 500 },
    'are lost by a crash, and counted',
  )
  const client = await returning(t, after, 'c')
  await client.next('publish', 999)
  const again = new Set(publishes(client).map(({ messageId }) => messageId))
  t.ok(
    sent.every((packetId) => again.has(packetId)),
    'but what was in flight comes again',
  )
})

t.test('a QoS 2 message comes to its end, though the journal no longer keeps it', async (t) => {
  const { start } = openHub(t)
  const broker = await start({ limits: { history: 0, windowBytes: 1 } })
  const before = await subscriber(t, broker, 'c', { '#': 2 }, persistent)
  await broker.broker.distribute([{ ...title('one', 1), qos: 2 }])
  const { messageId = 0 } = await before.next('publish')
  await leave(before)
  await broker.broker.distribute([{ ...title('two', 2), qos: 2 }])
  await broker.broker.distribute([{ ...message('other', 'o'), qos: 0 }])
  for (let sweep = 0; sweep < 5; sweep++) await broker.broker.trimming.sweep()
  const client = await peer(t, broker, 'c', persistent)
  t.match(await client.next('publish'), { payload: Buffer.from('one'), messageId, dup: true })
  for (let index = 0; index < 2; index++) {
    const { messageId = 0 } = await client.next('publish', index)
    client.send({ cmd: 'pubrec', messageId })
    await client.next('pubrel', index)
    client.send({ cmd: 'pubcomp', messageId })
  }
  await leave(client)
  while (await hasAny(broker.store, 'outgoing/')) await nextTurn()
  t.match(await broker.broker.session('c'), { queued: 0, dropped: 0 })
})

t.test('a connected session gets data events also later than their cycle', async (t) => {
  const clock = { now: Date.now() }
  const { start } = openHub(t)
  const broker = await start({ clock: () => clock.now })
  const client = await subscriber(t, broker, 'c', { '#': 1 }, persistent)
  await broker.broker.distribute(many(1_000, 'f'))
  for (let n = 0; n < 3; n++) await broker.broker.distribute([text(`text ${n}`, n, clock.now + 10_000)])
  await client.next('publish', 999)
  clock.now += 11_000
  acknowledgeAll(client)
  await client.next('publish', 1_002)
  t.same(
    publishes(client)
      .slice(1_000)
      .map(({ payload }) => `${payload}`),
    ['text 0', 'text 1', 'text 2'],
  )
})

t.test('a SUBSCRIBE brings the value of a data topic however old it is', async (t) => {
  const clock = { now: Date.now() }
  const { start } = openHub(t)
  const broker = await start({ clock: () => clock.now })
  await broker.broker.distribute([text('old', 1, clock.now + 10_000)])
  clock.now += 11_000
  for (const clean of [true, false]) {
    const client = await subscriber(t, broker, `clean ${clean}`, { '#': 1 }, { clean })
    t.match(await client.next('publish'), { payload: Buffer.from('old'), retain: true })
  }
})

t.test('what is said to wait is what comes', async (t) => {
  const clock = { now: Date.now() }
  const { start } = openHub(t)
  const broker = await start({ clock: () => clock.now })
  t.test('not what has expired since it was sent', async (t) => {
    const client = await subscriber(t, broker, 'expired', { '#': 1 }, persistent)
    const state = { queue: { keep: 'every' as const, expires: clock.now + 10_000 } }
    await broker.broker.distribute(many(5, 'radio/x/control').map((each) => ({ ...each, ...state })))
    await client.next('publish', 4)
    await leave(client)
    t.match(await broker.broker.session('expired'), { queued: 5 })
    clock.now += 11_000
    t.match(await broker.broker.session('expired'), { queued: 0 })
  })
  t.test('not what was never sent, and has no filter any more', async (t) => {
    await leave(await subscriber(t, broker, 'c', { '#': 1 }, persistent))
    await broker.broker.distribute(many(300, 'e'))
    const client = await peer(t, broker, 'c', persistent)
    await client.next('publish', 99)
    client.send({ cmd: 'unsubscribe', messageId: 2, unsubscriptions: ['#'] })
    await client.next('unsuback')
    await leave(client)
    t.match(await broker.broker.session('c'), { queued: 100, inFlight: 100 })
    const again = await returning(t, broker, 'c')
    await again.next('publish', 99)
    await again.settled()
    t.equal(publishes(again).length, 100)
  })
})

t.test('what a log-in loses is counted once, though it is tried again', async (t) => {
  let failures = 0
  const failing = (store: Store): Store => ({
    ...store,
    commit: (changes, underway) =>
      failures > 0 &&
      changes.some((change) => 'put' in change && change.put === 'session/c') &&
      failures-- > 0
        ? Promise.reject(new Error('disk full'))
        : store.commit(changes, underway),
  })
  const { start } = openHub(t)
  const broker = await start({ wrapStore: failing, limits: { queueLimit: 10 } })
  await leave(await subscriber(t, broker, 'c', { '#': 1 }, persistent))
  while ((await broker.broker.session('c'))?.connected) await nextTurn()
  await broker.broker.distribute(many(15, 'e'))
  failures = 1
  const refused = await rawClient(t, broker.port)
  t.strictSame(await refused.connectInVain({ clientId: 'c', ...persistent }), [])
  const client = await returning(t, broker, 'c')
  await client.next('publish', 9)
  const { values } = await broker.metrics.messagesDropped.get()
  t.match(
    values.filter(({ value }) => value > 0),
    [{ value: 5, labels: { reason: 'queue-limit' } }],
  )
})

/** Bytes of the payloads in memory, which Node.js keeps outside of the heap. */
function bytesInUse(): number {
  collectGarbage()
  return process.memoryUsage().arrayBuffers
}

async function hasAny(store: Store, prefix: string): Promise<boolean> {
  for await (const _entry of store.range(prefix)) return true
  return false
}

function text(payload: string, time: number, expires: number): Message {
  return { ...title(payload, time), topic: 'radio/x/data', queue: { keep: 'latest', time, expires } }
}
