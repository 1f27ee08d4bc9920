import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { openRetained } from '../../../broker/fanout/retained.ts'
import type { Message } from '../../../event/message.ts'
import { openEmbeddedStore } from '../../../store/embedded.ts'
import type { Store } from '../../../store/store.ts'
import { createSharedSpace } from '../../shared-store.ts'
import { temporaryDirectory } from '../../start-hub.ts'

const now = Date.parse('2026-01-31T12:00:00Z')
const state = (slot: string, fields: { time?: number; expires?: number } = {}): Message => ({
  topic: 'radio/x/control',
  payload: Buffer.from(slot),
  qos: 1,
  retained: { slot, time: now, ...fields },
  queue: { keep: 'every' },
})

async function start(t: Parameters<typeof temporaryDirectory>[0]) {
  const store = await openEmbeddedStore(join(await temporaryDirectory(t), 'store'))
  t.teardown(() => store.close())
  let time = now
  const retained = await openRetained(store, () => time)
  return {
    store,
    retained,
    at: (ms: number) => {
      time = ms
    },
    async publish(message: Message) {
      await store.commit(retained.changes([message], time))
      retained.show(message, time, 0)
    },
    shown: () => retained.current('radio/x/control')?.payload.toString(),
  }
}

t.test('of the states of a livestream the newest that is still valid is shown', async (t) => {
  const { publish, shown, at, retained, store } = await start(t)
  await publish(state('traffic', { time: now, expires: now + 1000 }))
  await publish(state('weather', { time: now - 500, expires: now + 5000 }))
  t.equal(shown(), 'traffic', 'a late older one does not replace it')
  at(now + 1000)
  t.equal(shown(), 'weather', 'its time over, the next newest takes its place')
  await retained.sweep()
  t.same((await openRetained(store, () => now + 1000)).topics('#'), ['radio/x/control'])
  at(now + 5000)
  t.equal(shown(), undefined, 'then nothing')
  await retained.sweep()
  t.same(retained.topics('#'), [])
  t.same((await openRetained(store, () => now)).topics('#'), [], 'and nothing is left in the store')
})

t.test('a state far in the future does not hide newer arrivals of other names', async (t) => {
  const { publish, shown } = await start(t)
  await publish(state('wrong clock', { time: now + 3_600_000 }))
  await publish(state('now'))
  t.equal(shown(), 'now')
})

t.test('names without end push out the oldest', async (t) => {
  const { publish, retained, store, at } = await start(t)
  for (let index = 0; index < 150; index++) await publish(state(`name ${index}`, { expires: now + 9e6 }))
  await retained.sweep()
  const stored: string[] = []
  for await (const [key] of store.range('retained/')) stored.push(key)
  t.equal(stored.length, 100)
  t.ok(stored.some((key) => key.endsWith('"name 149"')))
  t.notOk(stored.some((key) => key.endsWith('"name 49"')))
  await publish(state('name 10'))
  at(now + 1)
  await retained.sweep()
  t.equal(retained.current('radio/x/control')?.slot, 'name 10', 'a name that comes back is kept')
})

t.test('states that are large together push out the oldest', async (t) => {
  const { publish, retained, store, at } = await start(t)
  const large = (slot: string, kilobytes: number) => ({
    ...state(slot, { expires: now + 9e6 }),
    payload: Buffer.alloc(kilobytes * 1024, slot),
  })
  for (let index = 0; index < 8; index++) await publish(large(`${index}`, 100))
  const names = async () => {
    await retained.sweep()
    return (await keysBelow(store, 'retained/')).map((key) => JSON.parse(key.split('\n')[1] ?? ''))
  }
  t.same(await names(), ['3', '4', '5', '6', '7'])
  await publish(large('as large as may be', 1024))
  at(now + 1)
  t.same(await names(), ['as large as may be'])
  t.equal(retained.current('radio/x/control')?.slot, 'as large as may be')
})

t.test('of states with the same time the later arrival is shown, after a restart as well', async (t) => {
  const { publish, shown, store } = await start(t)
  await publish(state('z-first'))
  await publish(state('a-second'))
  t.equal(shown(), 'a-second')
  const again = await openRetained(store, () => now)
  t.equal(again.current('radio/x/control')?.slot, 'a-second')
  const third = state('a-1-third')
  await store.commit(again.changes([third], now))
  again.show(third, now, 0)
  const then = await openRetained(store, () => now)
  t.equal(then.current('radio/x/control')?.slot, 'a-1-third', 'it counts on')
})

t.test('of states with the same time every node shows the same', async (t) => {
  const space = createSharedSpace()
  const [storeA, storeB] = [space.openWatched(t), space.openWatched(t)]
  const [a, b] = [await openRetained(storeA, () => now), await openRetained(storeB, () => now)]
  storeA.start()
  storeB.start()
  const shown = (node: typeof a) => node.current('radio/x/control')?.slot
  const publish = async (node: typeof a, store: typeof storeA, message: Message) => {
    await store.commit(node.changes([message], now))
    node.show(message, now, 0)
    while (shown(a) !== message.retained?.slot || shown(b) !== shown(a)) await nextTurn()
  }
  await publish(a, storeA, state('z-first'))
  await publish(b, storeB, state('m-second'))
  await publish(a, storeA, state('a-third'))
  const late = await openRetained(space.openWatched(t), () => now)
  t.equal(shown(late), 'a-third', 'also one that starts afterwards')
})

/** One event for several livestreams, as it is distributed. */
function messagesOf(payload: Buffer, time = now, livestreams = ['a', 'b', 'c']): Message[] {
  const rules = { qos: 1, retained: { slot: '', time }, queue: { keep: 'latest', time } } as const
  return livestreams.map((id) => ({ topic: `radio/${id}/track/playing`, payload, ...rules }))
}

async function keysBelow(store: Store, prefix: string): Promise<string[]> {
  const keys: string[] = []
  for await (const [key] of store.range(prefix)) keys.push(key)
  return keys
}

t.test('the payload of an event for several livestreams is stored once', async (t) => {
  const { store, retained } = await start(t)
  const payload = Buffer.alloc(100_000, 'x')
  const messages = messagesOf(payload)
  await store.commit(retained.changes(messages, now))
  for (const message of messages) retained.show(message, now, 0)
  t.equal((await keysBelow(store, 'retained-body/')).length, 1)
  for await (const [key, value] of store.range('retained/')) t.ok(value.length < 500, key)
  await retained.sweep()
  await retained.sweep()
  const reopened = await openRetained(store, () => now)
  for (const { topic } of messages) t.same(reopened.current(topic)?.payload, payload, topic)
})

t.test('a stored payload goes when no livestream shows it any more', async (t) => {
  const { store, retained } = await start(t)
  const publish = async (messages: Message[]) => {
    await store.commit(retained.changes(messages, now))
    for (const message of messages) retained.show(message, now, 0)
  }
  await publish(messagesOf(Buffer.from('first')))
  await publish(messagesOf(Buffer.from('late'), now - 1))
  await publish(messagesOf(Buffer.from('second'), now + 1, ['a']))
  await publish(messagesOf(Buffer.from('third'), now + 2, ['b']))
  for (let sweep = 0; sweep < 3; sweep++) await retained.sweep()
  t.equal((await keysBelow(store, 'retained-body/')).length, 1, 'the last livestream still shows it')
  t.equal(
    (await openRetained(store, () => now)).current('radio/c/track/playing')?.payload.toString(),
    'first',
  )
  await retained.clear('radio/c/track/playing')
  for (let sweep = 0; sweep < 2; sweep++) await retained.sweep()
  t.same(await keysBelow(store, 'retained-body/'), [])
})

t.test('a payload nothing refers to, left by a crash, is removed', async (t) => {
  const { store } = await start(t)
  await store.commit([{ put: 'retained-body/left-over', value: 'x' }])
  const retained = await openRetained(store, () => now)
  for (let sweep = 0; sweep < 2; sweep++) await retained.sweep()
  t.same(await keysBelow(store, 'retained-body/'), [])
})

t.test('a value whose successor could not be stored comes back, however late', async (t) => {
  const { store, retained } = await start(t)
  const first = messagesOf(Buffer.from('first'))
  await store.commit(retained.changes(first, now))
  for (const message of first) retained.show(message, now, 0)
  const second = messagesOf(Buffer.from('second'), now + 1)
  retained.changes(second, now)
  const takeBack = second.map((message) => retained.show(message, now, 0))
  await retained.sweep()
  for (const back of takeBack) await back?.()
  for (let sweep = 0; sweep < 3; sweep++) await retained.sweep()
  t.equal(
    (await openRetained(store, () => now)).current('radio/a/track/playing')?.payload.toString(),
    'first',
  )
  t.equal(retained.current('radio/a/track/playing')?.payload.toString(), 'first')
})

t.test('another node shows what several livestreams share, and both may sweep', async (t) => {
  const space = createSharedSpace()
  const [storeA, storeB] = [space.openWatched(t), space.openWatched(t)]
  const [a, b] = [await openRetained(storeA, () => now), await openRetained(storeB, () => now)]
  storeA.start()
  storeB.start()
  const publish = async (messages: Message[]) => {
    await storeA.commit(a.changes(messages, now))
    for (const message of messages) a.show(message, now, 0)
    const shown = () => b.current(messages.at(-1)?.topic ?? '')?.payload.toString()
    while (shown() !== messages[0]?.payload.toString()) await nextTurn()
  }
  await publish(messagesOf(Buffer.from('first')))
  for (const node of [a, b, a, b]) await node.sweep()
  await publish(messagesOf(Buffer.from('second'), now + 1))
  for (const node of [b, a, b, a, b]) await node.sweep()
  t.equal((await keysBelow(storeA, 'retained-body/')).length, 1)
  const late = await openRetained(space.openWatched(t), () => now)
  t.equal(late.current('radio/b/track/playing')?.payload.toString(), 'second')
})
