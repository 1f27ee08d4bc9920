import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import type { Message } from '../../event/message.ts'
import { maxLivestreams } from '../../event/schema.ts'
import { openJournal } from '../../journal/journal.ts'
import { openRetained } from '../../journal/retained.ts'
import { createRetainedValues } from '../../journal/retained-values.ts'
import { openReturnable } from '../../journal/returnable.ts'
import { openEmbeddedStore } from '../../store/embedded.ts'
import type { Store, Told } from '../../store/store.ts'
import { createSharedSpace, settled } from '../shared-store.ts'
import { temporaryDirectory } from '../start-hub.ts'

const now = Date.parse('2026-01-31T12:00:00Z')
const state = (slot: string, fields: { time?: number; expires?: number } = {}): Message => ({
  topic: 'radio/x/control',
  payload: Buffer.from(slot),
  qos: 1,
  retained: { slot, time: now, ...fields },
  queue: { keep: 'every' },
})

/** What a store has, with a journal that keeps the messages. */
async function open(store: Store, clock = () => now) {
  const journal = await openJournal(store)
  const returnable = await openReturnable(store)
  const retained = await openRetained({ store, journal, returnable, clock })
  /** The changes of an event. */
  const changes = (messages: readonly Message[]) => [
    ...journal.append(messages, clock()),
    ...retained.changes(messages, clock()),
  ]
  return {
    ...retained,
    changes,
    /** Stores and shows an event. Returns the position of its first message. */
    async publish(...messages: Message[]): Promise<number> {
      const first = await store.commit(changes(messages))
      for (const entry of journal.appended(messages, first, clock())) {
        retained.show(entry, clock(), entry.position)
        retained.stored(entry)
      }
      return first
    },
    /** Topics and payloads that a session gets which was away since a position, in this order. */
    async missed(position: number): Promise<string[]> {
      const all = [...returnable.since(position, ['#'])].reverse()
      const entries = await Promise.all(all.map((candidate) => journal.get(candidate.position)))
      return entries.map((entry) => `${entry?.topic} ${entry?.payload}`)
    },
  }
}

async function start(t: Parameters<typeof temporaryDirectory>[0]) {
  const store = await openEmbeddedStore(join(await temporaryDirectory(t), 'store'))
  t.teardown(() => store.close())
  let time = now
  const retained = await open(store, () => time)
  return {
    store,
    retained,
    at: (ms: number) => {
      time = ms
    },
    publish: retained.publish,
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
  t.same((await open(store, () => now + 1000)).topics('#'), ['radio/x/control'])
  at(now + 5000)
  t.equal(shown(), undefined, 'then nothing')
  await retained.sweep()
  t.same(retained.topics('#'), [])
  t.same((await open(store)).topics('#'), [], 'and nothing is left in the store')
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
  const again = await open(store)
  t.equal(again.current('radio/x/control')?.slot, 'a-second')
  await again.publish(state('a-1-third'))
  const then = await open(store)
  t.equal(then.current('radio/x/control')?.slot, 'a-1-third', 'it counts on')
})

t.test('of states with the same time every node shows the same', async (t) => {
  const space = createSharedSpace()
  const [storeA, storeB] = [space.openFollowed(t), space.openFollowed(t)]
  const [a, b] = [await open(storeA), await open(storeB)]
  storeA.start()
  storeB.start()
  const shown = (node: typeof a) => node.current('radio/x/control')?.slot
  const publish = async (node: typeof a, message: Message) => {
    await node.publish(message)
    while (shown(a) !== message.retained?.slot || shown(b) !== shown(a)) await nextTurn()
  }
  await publish(a, state('z-first'))
  await publish(b, state('m-second'))
  await publish(a, state('a-third'))
  const late = await open(space.openFollowed(t))
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
  const { store, retained, publish } = await start(t)
  const payload = Buffer.alloc(100_000, 'x')
  const messages = messagesOf(payload)
  await publish(...messages)
  const stored: number[] = []
  for (const prefix of ['journal/', 'latest/', 'retained/']) {
    for await (const [, value] of store.range(prefix)) stored.push(value.length)
  }
  t.equal(stored.filter((bytes) => bytes > payload.length).length, 1)
  t.equal(stored.filter((bytes) => bytes > 500).length, 1)
  await retained.sweep()
  const reopened = await open(store)
  for (const { topic } of messages) t.same(reopened.current(topic)?.payload, payload, topic)
})

t.test('the journal must keep what is shown, and nothing else', async (t) => {
  const { retained, publish } = await start(t)
  const first = await publish(...messagesOf(Buffer.from('first')))
  const late = await publish(...messagesOf(Buffer.from('late'), now - 1))
  const second = await publish(...messagesOf(Buffer.from('second'), now + 1, ['a']))
  const topicOf = (id: string) => `radio/${id}/track/playing`
  const names = (id: string, ...positions: number[]) =>
    positions.map((position) => retained.names(topicOf(id), position))
  t.same(names('a', first, late, second), [false, false, true])
  t.same(names('c', first + 2, late + 2, second), [true, false, false])
  await retained.clear(topicOf('c'))
  t.same(names('c', first + 2), [false])
  const states = [await publish(state('traffic')), await publish(state('weather'))]
  t.same(
    states.map((position) => retained.names('radio/x/control', position)),
    [true, true],
    'names side by side are all kept',
  )
})

t.test('a session that was away gets the newest of a topic, after a restart as well', async (t) => {
  const { store, retained, publish } = await start(t)
  const first = await publish(...messagesOf(Buffer.from('first')))
  await publish(...messagesOf(Buffer.from('late'), now - 1))
  await publish(...messagesOf(Buffer.from('second'), now + 1, ['a']))
  await publish(...messagesOf(Buffer.from('second'), now + 1, ['b']))
  await retained.clear('radio/b/track/playing')
  const expected = ['radio/c/track/playing first', 'radio/a/track/playing second']
  for (const node of [retained, await open(store)]) {
    t.same(await node.missed(0), expected)
    t.same(await node.missed(first + 2), expected.slice(1))
  }
})

t.test('a value whose successor could not be stored comes back, however late', async (t) => {
  const { store, retained, publish } = await start(t)
  const first = messagesOf(Buffer.from('first'))
  const position = await publish(...first)
  const second = messagesOf(Buffer.from('second'), now + 1)
  const takeBack = second.map((message, nth) => retained.show(message, now, position + 3 + nth))
  t.equal(retained.current('radio/a/track/playing')?.payload.toString(), 'second')
  await retained.sweep()
  for (const back of takeBack) await back?.()
  await retained.sweep()
  for (const node of [retained, await open(store)]) {
    t.equal(node.current('radio/a/track/playing')?.payload.toString(), 'first')
    t.same(
      await node.missed(0),
      first.map(({ topic }) => `${topic} first`),
    )
  }
})

t.test('another node shows what several livestreams share, and both may sweep', async (t) => {
  const space = createSharedSpace()
  const [storeA, storeB] = [space.openFollowed(t), space.openFollowed(t)]
  const [a, b] = [await open(storeA), await open(storeB)]
  storeA.start()
  storeB.start()
  const publish = async (messages: Message[]) => {
    await a.publish(...messages)
    const shown = () => b.current(messages.at(-1)?.topic ?? '')?.payload.toString()
    while (shown() !== messages[0]?.payload.toString()) await nextTurn()
  }
  await publish(messagesOf(Buffer.from('first')))
  for (const node of [a, b, a, b]) await node.sweep()
  await publish(messagesOf(Buffer.from('second'), now + 1))
  for (const node of [b, a, b, a, b]) await node.sweep()
  const late = await open(space.openFollowed(t))
  for (const node of [a, b, late]) {
    t.equal(node.current('radio/b/track/playing')?.payload.toString(), 'second')
    t.equal((await node.missed(0)).length, 3)
  }
})

t.test('another node takes over the largest event for as many livestreams as there may be', async (t) => {
  const space = createSharedSpace()
  const [storeA, storeB] = [space.openFollowed(t), space.openFollowed(t)]
  const [a, b] = [await open(storeA), await open(storeB)]
  storeA.start()
  storeB.start()
  const livestreams = Array.from({ length: maxLivestreams }, (_, index) => `${index}`)
  for (const time of [now, now + 1]) {
    const messages = messagesOf(Buffer.alloc(1024 * 1024, `${time}`), time, livestreams)
    await a.publish(...messages)
    await settled(storeA, storeB)
    t.ok(messages.every(({ topic, payload }) => b.current(topic)?.payload.equals(payload)))
  }
})

t.test('a value that this node had given up does not replace a later one of its own', async (t) => {
  const store = await openEmbeddedStore(join(await temporaryDirectory(t), 'store'))
  t.teardown(() => store.close())
  const told: ((change: Told) => void)[] = []
  const retained = await open({
    ...store,
    onOthers: (place, listener) => void (place === 'retained/' && told.push(listener)),
  })
  const kept = { ...state('given up'), queue: { keep: 'latest' as const }, retained: { slot: '', time: now } }
  await retained.publish(kept)
  const key = 'retained/radio/x/control\n""'
  const value = await store.get(key)
  if (!value) throw new Error('a stored value')
  await retained.publish({ ...kept, payload: Buffer.from('later') })
  for (const tell of told) tell({ put: key, value })
  t.equal(retained.current(kept.topic)?.payload.toString(), 'later')
  t.same(await retained.missed(0), ['radio/x/control later'])

  // Unless its event is the newer one: then the store has kept it.
  await retained.clear(kept.topic)
  await retained.publish({ ...kept, retained: { slot: '', time: now + 1 } })
  const newer = await store.get(key)
  if (!newer) throw new Error('a stored value')
  await retained.clear(kept.topic)
  await retained.publish({ ...kept, payload: Buffer.from('later') })
  for (const tell of told) tell({ put: key, value: newer })
  t.equal(retained.current(kept.topic)?.payload.toString(), 'given up')
  t.same(await retained.missed(0), ['radio/x/control given up'])
})

t.test('the journal keeps a stored value while two events that hide it are taken back', async (t) => {
  const { publish, retained } = await start(t)
  const { show, names, current } = retained
  const topic = 'radio/x/control'
  const stored = await publish(state('name'))
  const [second, third] = [1, 2].map((later) =>
    show(state('name', { time: now + later }), now, stored + later),
  )
  await second?.()
  t.ok(names(topic, stored), 'the third event may be taken back, too')
  await third?.()
  t.equal(current(topic)?.position, stored)
  t.ok(names(topic, stored))
})

t.test('a clearing under way hides what a failed event hid, beside all else that it hides', async (t) => {
  const values = createRetainedValues(await openReturnable(createSharedSpace().open()))
  const topic = 'radio/x/control'
  const value = (slot: string, position: number) => {
    const queue = { keep: 'every' } as const
    return { topic, slot, position, queue, time: now, qos: 1 as const, payload: Buffer.from(slot) }
  }
  const [stored, other, failing] = [value('a', 1), value('b', 2), value('a', 3)]
  values.hide(failing.position, [stored])
  values.hide('clearing', [other, failing])
  values.isNotStored(failing)
  t.same(
    [1, 2, 3].map((position) => values.names(topic, position)),
    [true, true, false],
  )
})
