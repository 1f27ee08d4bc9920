import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import type { Message } from '../../event/message.ts'
import { maxLivestreams } from '../../event/schema.ts'
import { openJournal } from '../../journal/journal.ts'
import { openRetained } from '../../journal/retained.ts'
import { openReturnable } from '../../journal/returnable.ts'
import { numbersTaken } from '../../store/commit.ts'
import { type CommitPart, commitTogether } from '../../store/commit-together.ts'
import { openEmbeddedStore } from '../../store/embedded.ts'
import type { Store } from '../../store/store.ts'
import { openStore } from '../open-store.ts'
import { createRandom } from '../random.ts'
import { createSharedSpace, settled } from '../shared-store.ts'
import type { temporaryDirectory } from '../start-hub.ts'

const now = Date.parse('2026-01-31T12:00:00Z')
const state = (slot: string, fields: { time?: number; expires?: number } = {}): Message => ({
  topic: 'radio/x/control',
  payload: Buffer.from(slot),
  qos: 1,
  retained: { slot, time: now, ...fields },
  queue: { keep: 'every' },
})

/** Opens the retained values of a store, with the journal that keeps their messages. */
async function open(store: Store, clock = () => now) {
  const journal = await openJournal(store)
  const returnable = await openReturnable(store)
  const retained = await openRetained({ store, journal, returnable, clock })
  return {
    ...retained,
    /** Stores an event. Returns the position of the first message. */
    async publish(...messages: Message[]): Promise<number> {
      const appending = journal.append(messages, clock())
      let position = 0
      let shown: ReturnType<typeof retained.show> = []
      const part: CommitPart = {
        changes: [...appending.changes, ...retained.changes(messages, clock())],
        begin(first) {
          position = first
          shown = retained.show(messages, clock(), first)
        },
        end(how) {
          if (how !== 'failed') appending.stored(how)
          for (const end of shown) end(how)
        },
      }
      await commitTogether(store, [() => part])
      return position
    },
    /** Topics and payloads, in order, for a session that was away since `position`. */
    async missed(position: number): Promise<string[]> {
      const all = [...returnable.since(position, ['#'])].reverse()
      const entries = await Promise.all(all.map((candidate) => journal.get(candidate.position)))
      return entries.map((entry) => `${entry?.topic} ${entry?.payload}`)
    },
  }
}

/** A store that calls `callBack` at once. The test decides for each commit, in order, whether the store applies it. */
async function createUndecided(store: Store) {
  let lastNumber = await store.lastNumber()
  const underway: ((isStored: boolean) => Promise<void>)[] = []
  return {
    store: {
      ...store,
      commit(changes, callBack) {
        const taken = numbersTaken(changes)
        const first = taken === 0 ? 0 : lastNumber + 1
        lastNumber += taken
        callBack?.(first)
        return new Promise((resolve, reject) => {
          underway.push(async (isStored) => {
            if (isStored) await store.commit(changes)
            // A failed commit has still used up its numbers.
            else if (taken > 0) await store.commit([{ put: 'failed/', value: '', numbered: last(taken) }])
            if (isStored) resolve(first)
            else reject(new Error('disk full'))
          })
        })
      },
    } satisfies Store,
    /** Ends the oldest commit under way. */
    end: async (isStored: boolean): Promise<void> => {
      await underway.shift()?.(isStored)
      await nextTurn()
    },
    get count() {
      return underway.length
    },
  }
}

const last = (taken: number) => ({ nth: taken - 1, at: 'value' }) as const

async function start(t: Parameters<typeof temporaryDirectory>[0]) {
  const store = await openStore(t)
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

t.test('a state that a node extends stays, while another node removes it as expired', async (t) => {
  const space = createSharedSpace()
  const [storeA, storeB] = [space.openFollowed(t), space.openFollowed(t)]
  let time = now
  const [a, b] = [await open(storeA, () => time), await open(storeB, () => time)]
  storeA.start()
  storeB.start()
  for (const slot of ['over', 'traffic', 'also over']) await a.publish(state(slot, { expires: now + 1000 }))
  await settled(storeA, storeB)
  time = now + 1000
  await Promise.all([b.publish(state('traffic', { expires: now + 5000 })), a.sweep()])
  await settled(storeA, storeB)
  t.same(await keysBelow(storeA, 'retained/'), ['retained/radio/x/control\n"traffic"'])
  for (const node of [a, b, await open(space.openFollowed(t), () => time)]) {
    t.match(node.current('radio/x/control'), { slot: 'traffic', expires: now + 5000 })
  }
  time = now + 5000
  await a.sweep()
  await settled(storeB)
  t.same(await keysBelow(storeB, 'retained/'), [])
  for (const node of [a, b]) t.same(node.topics('#'), [])
})

/** The messages of one event for several livestreams. */
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
    positions.map((position) => retained.refersTo(topicOf(id), position))
  t.same(names('a', first, late, second), [false, false, true])
  t.same(names('c', first + 2, late + 2, second), [true, false, false])
  await retained.clear(topicOf('c'))
  t.same(names('c', first + 2), [false])
  const states = [await publish(state('traffic')), await publish(state('weather'))]
  t.same(
    states.map((position) => retained.refersTo('radio/x/control', position)),
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
  const store = await openStore(t)
  const listeners: Parameters<Store['onOthers']>[1][] = []
  const retained = await open({
    ...store,
    onOthers: (prefix, listener) => void (prefix === 'retained/' && listeners.push(listener)),
  })
  const kept = { ...state('given up'), queue: { keep: 'latest' as const }, retained: { slot: '', time: now } }
  await retained.publish(kept)
  const key = 'retained/radio/x/control\n""'
  const value = await store.get(key)
  if (!value) throw new Error('a stored value')
  await retained.publish({ ...kept, payload: Buffer.from('later') })
  for (const tell of listeners) tell(key, value)
  t.equal(retained.current(kept.topic)?.payload.toString(), 'later')
  t.same(await retained.missed(0), ['radio/x/control later'])

  // Here the value `given up` has the newer event time, so it wins over `later`, in the store and on the node.
  await retained.clear(kept.topic)
  await retained.publish({ ...kept, retained: { slot: '', time: now + 1 } })
  const newer = await store.get(key)
  if (!newer) throw new Error('a stored value')
  await retained.clear(kept.topic)
  await retained.publish({ ...kept, payload: Buffer.from('later') })
  for (const tell of listeners) tell(key, newer)
  t.equal(retained.current(kept.topic)?.payload.toString(), 'given up')
  t.same(await retained.missed(0), ['radio/x/control given up'])
})

/* Values whose commits are under way, and may fail. */

const topic = 'radio/x/track/playing'

/** A node with the retained value `stored`. The test decides whether each commit succeeds. */
async function startUndecided(t: Parameters<typeof temporaryDirectory>[0]) {
  const embedded = await openStore(t)
  let time = now
  const before = await open(embedded)
  const position = await before.publish(...messagesOf(Buffer.from('stored'), now, ['x']))
  const undecided = await createUndecided(embedded)
  const node = await open(undecided.store, () => time)
  return {
    node,
    position,
    at: (ms: number) => {
      time = ms
    },
    /** Publishes an event that is `later` milliseconds newer than the stored value. */
    publish: (name: string, later = 0, expires?: number): void => {
      const messages = messagesOf(Buffer.from(name), now + later, ['x']).map((message) => ({
        ...message,
        retained: { slot: '', time: now + later, ...(expires !== undefined && { expires }) },
      }))
      node.publish(...messages).catch(() => undefined)
    },
    publishState: (
      slot: string,
      { bytes = 10, ...fields }: { bytes?: number; time?: number; expires?: number } = {},
    ): void => {
      const message = { ...state(slot, fields), payload: Buffer.alloc(bytes, slot) }
      node.publish(message).catch(() => undefined)
    },
    /** Publishes an event for `count` livestreams, all with the same event time. */
    publishMany: (count: number, expires: number): void => {
      const messages = Array.from({ length: count }, (_, nth) => ({
        ...state('', { expires }),
        topic: `radio/many/${nth}`,
      }))
      node.publish(...messages).catch(() => undefined)
    },
    /**
     * Sweeps. Returns the slots of the states that the node shows then. Asserts that a node that starts now shows the
     * same.
     */
    async states(): Promise<string[]> {
      void node.sweep()
      await undecided.end(true)
      const started = await open(embedded, () => time)
      const shown = (each: typeof node) =>
        ['a', 'b', 'large'].filter((slot) => each.at('radio/x/control', slot) !== undefined)
      t.same(shown(started), shown(node))
      return shown(node)
    },
    clear: (): void => void node.clear(topic).catch(() => undefined),
    sweep: (): void => void node.sweep(),
    end: undecided.end,
    shown: () => node.current(topic)?.payload.toString(),
    /** Expects that new subscribers and returning sessions get a value, on this node and on one that starts now. */
    async has(name: string | undefined, what: string): Promise<void> {
      for (const each of [node, await open(embedded, () => time)]) {
        t.equal(each.current(topic)?.payload.toString(), name, what)
        t.same(await each.missed(0), name === undefined ? [] : [`${topic} ${name}`], what)
      }
    },
  }
}

t.test('a value whose successor cannot be stored comes back', async (t) => {
  const { publish, end, shown, has } = await startUndecided(t)
  publish('second', 1)
  t.equal(shown(), 'second')
  await end(false)
  await has('stored', 'the stored value')
})

t.test('a value that is stored behind a later one comes back when that one fails', async (t) => {
  const { publish, end, shown, has } = await startUndecided(t)
  publish('second', 1)
  publish('third', 2)
  await end(true)
  t.equal(shown(), 'third')
  await end(false)
  await has('second', 'the last that was stored')
})

t.test('an event that the store prefers to none is shown when the newer one fails', async (t) => {
  const { publish, end, shown, has } = await startUndecided(t)
  publish('newest', 2)
  publish('newer', 1)
  t.equal(shown(), 'newest')
  await end(false)
  t.equal(shown(), 'newer')
  await end(true)
  await has('newer', 'the only one that was stored')
})

t.test('a clearing that fails changes nothing', async (t) => {
  const { clear, end, shown, has } = await startUndecided(t)
  clear()
  t.equal(shown(), undefined)
  await end(false)
  await has('stored', 'as before')
})

t.test('a clearing also removes the event that was under way before it', async (t) => {
  const { publish, clear, end, shown, has } = await startUndecided(t)
  publish('second', 1)
  clear()
  publish('third', -1)
  t.equal(shown(), 'third', 'the event after it is shown, however old')
  await end(true)
  await end(true)
  t.equal(shown(), 'third')
  await end(false)
  await has(undefined, 'nothing is left')
})

t.test('an event that is older than an expired one is shown when that one is removed', async (t) => {
  const { publish, end, sweep, at, shown, has } = await startUndecided(t)
  publish('short', 2, now + 10)
  await end(true)
  at(now + 10)
  sweep()
  publish('older', 1)
  t.equal(shown(), 'older')
  await end(true)
  await end(true)
  await has('older', 'the expired one is gone')
})

t.test('the journal keeps a stored value while commits that hide it may fail', async (t) => {
  const { node, position, publish, clear, end } = await startUndecided(t)
  publish('second', 1)
  publish('third', 2)
  clear()
  for (let step = 0; step < 3; step++) {
    t.ok(node.refersTo(topic, position), `${step} have failed`)
    await end(false)
  }
  t.equal(node.current(topic)?.position, position)
  t.ok(node.refersTo(topic, position))
  publish('fourth', 3)
  await end(true)
  t.notOk(node.refersTo(topic, position))
})

t.test('a large state that cannot be stored pushes nothing out of memory', async (t) => {
  const { node, states, publishState, end } = await startUndecided(t)
  publishState('a', { bytes: 10 })
  publishState('b', { bytes: 10 })
  await end(true)
  await end(true)
  publishState('large', { bytes: 600_000 })
  await end(false)
  t.same(await states(), ['a', 'b'])
  publishState('large', { bytes: 600_000 })
  await end(true)
  t.same(await states(), ['large'])
  t.same(node.topics('radio/x/control'), ['radio/x/control'])
})

t.test('a clearing also removes the states that were pushed out of memory', async (t) => {
  const { node, states, publishState, end, shown } = await startUndecided(t)
  for (const slot of ['a', 'b']) {
    publishState(slot, { bytes: 400_000 })
    await end(true)
  }
  const clearing = node.clear('radio/x/control')
  await end(true)
  t.ok(await clearing)
  t.same(await states(), [])
  t.equal(shown(), 'stored', 'another topic is as before')
})

t.test('a state that expires while it is being stored takes no stored one with it', async (t) => {
  const { states, publishState, sweep, at, end } = await startUndecided(t)
  publishState('a', { expires: now + 100 })
  await end(true)
  publishState('a', { time: now + 1, expires: now + 10 })
  at(now + 10)
  sweep()
  await end(false)
  t.same(await states(), ['a'])
})

t.test('a sweep leaves alone a state that comes back while it is being stored', async (t) => {
  const { states, publishState, sweep, end } = await startUndecided(t)
  for (const slot of ['a', 'b', 'large']) {
    publishState(slot, { bytes: 300_000 })
    await end(true)
  }
  publishState('a')
  sweep()
  await end(true)
  await end(true)
  t.ok((await states()).includes('a'))
})

t.test('a sweep leaves alone a state whose commit has not begun yet', async (t) => {
  const directory = join(t.testdir(), 'store')
  const store = await openEmbeddedStore(directory)
  let time = now
  const node = await open(store, () => time)
  await node.publish(state('s', { expires: now + 10 }))
  // Later commits wait until the store has checked this commit.
  const conditional = store.commit([{ check: 'x/y', when: 'absent' }])
  const published = node.publish(state('s', { time: now + 1, expires: now + 1_000 }))
  time = now + 10
  await Promise.all([conditional, published, node.sweep()])
  t.ok(node.current('radio/x/control'))
  await store.close()
  const again = await openStore(t, directory)
  t.ok((await open(again, () => time)).current('radio/x/control'))
})

t.test('a sweep of very many values leaves alone those that are replaced meanwhile', async (t) => {
  const { node, at, publishMany, end } = await startUndecided(t)
  publishMany(320, now + 10)
  await end(true)
  at(now + 10)
  const swept = node.sweep()
  publishMany(320, now + 1_000)
  for (let ended = 0; ended < 3; ended++) await end(true)
  await swept
  t.equal(node.topics('radio/many/+').length, 320)
})

t.test('the stored value of a topic does not depend on what is under way', async (t) => {
  const { node, publishState, end } = await startUndecided(t)
  const stored = () => node.stored('radio/x/control')?.slot
  for (const slot of ['a', 'b']) {
    publishState(slot)
    await end(true)
  }
  publishState('a', { time: now + 1 })
  t.equal(node.current('radio/x/control')?.slot, 'a')
  t.equal(stored(), 'b')
  await end(false)
  t.equal(stored(), 'b')
})

for (const [what, share, sizes] of [
  ['commits fail', 0.4, [10]],
  ['states are pushed out', 0, [10, 100_000, 300_000]],
  ['commits fail and states are pushed out', 0.4, [10, 100_000, 300_000]],
] as const) {
  t.test(`a node has what a node that starts afterwards has, while ${what}`, async (t) => {
    for (let seed = 1; seed <= 25; seed++) {
      const random = createRandom(`${seed}`)
      const store = await createUndecided(createSharedSpace().open())
      const node = await open(store.store)
      const attempt = (work: Promise<unknown>) => void work.catch(() => undefined)
      const slots = ['', 'a', 'b', 'c', 'd', 'e'] as const
      for (let step = 0; step < 100 || store.count > 0; step++) {
        const kind = step < 100 ? random.between(0, 1) : 1
        const slot = random.oneOf(slots)
        const time = now + step - random.below(20)
        const named = slot === '' ? messagesOf(Buffer.alloc(0), time, ['x']) : [state(slot, { time })]
        const messages = named.map((message) => ({
          ...message,
          payload: Buffer.alloc(random.oneOf(sizes), `${step}`),
        }))
        if (kind < 0.45) attempt(node.publish(...messages))
        else if (kind < 0.48) attempt(node.clear(messages[0]?.topic ?? ''))
        else if (kind < 0.53) attempt(node.sweep())
        else await store.end(!random.happens(share))
      }
      attempt(node.sweep())
      while (store.count > 0) await store.end(true)
      const started = await open(store.store)
      for (const each of [topic, 'radio/x/control']) {
        const has = (one: typeof node) => slots.map((slot) => one.at(each, slot)?.position)
        t.same(has(node), has(started), `${each}, seed ${seed}`)
      }
      const newest = (await started.missed(0)).filter((missed) => missed.startsWith(topic))
      t.same(await node.missed(0), newest, `missed, seed ${seed}`)
    }
  })
}

t.test('a store that fails while the values are loaded ends the start with its error', async (t) => {
  const store = await openStore(t)
  const { publish } = await open(store)
  await publish(state('first'))
  await publish(state('second'))
  const failing: Store = {
    ...store,
    get: (key) => (key.startsWith('journal/') ? Promise.reject(new Error('no answer')) : store.get(key)),
    // The next value comes a turn later, as from Redis: a failed read has to wait for its range.
    async *range(...of) {
      for await (const record of store.range(...of)) {
        yield record
        await nextTurn()
      }
    },
  }
  await t.rejects(open(failing), { message: 'no answer' })
})
