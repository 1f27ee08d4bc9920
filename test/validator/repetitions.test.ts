import t, { type Test } from 'tap'
import { commitTogether } from '../../store/commit-together.ts'
import type { Change } from '../../store/store.ts'
import { createRepetitions, decideWithRetries, fingerprintOf } from '../../validator/repetitions.ts'
import { createMemoryStore } from '../delivery/memory-store.ts'
import { hour, type OpenQueues, openQueues, type Planned } from '../delivery/open-queues.ts'
import { createSharedSpace, type SharedSpace, settled } from '../shared-store.ts'

/** Stores and shows the work of `plan`. Plans again if another node has marked the event. */
async function settle({ memory }: OpenQueues, plan: () => Planned): Promise<boolean> {
  const stored = decideWithRetries(() => commitTogether(memory.store, [plan]))
  return stored.then(
    () => true,
    () => false,
  )
}

t.test('a repetition causes no work, within an hour, also after a restart', async (t) => {
  const one = await openQueues()
  await settle(one, () => one.plan('1', ['a', 'b'], 'same'))
  const again = one.plan('2', ['a', 'b'], 'same')
  t.same(again.changes, [])
  await settle(one, () => again)
  t.equal(one.queues.lengthOf('a').pending, 1)
  const found = await one.reopen()
  t.same(found.plan('3', ['a', 'b'], 'same').changes, [])
  t.not(found.plan('3', ['a', 'b'], 'other').changes.length, 0)

  const partly = found.plan('3', ['a', 'c'], 'same')
  await settle(found, () => partly)
  t.match([found.queues.lengthOf('a').pending, found.queues.lengthOf('c').pending], [1, 1])

  found.time.now += hour
  await settle(found, () => found.plan('4', ['a'], 'same'))
  t.same(await found.drain('a'), ['1', '4'])
})

t.test('the first one is being stored: the repetition is stored behind it, and works once', async (t) => {
  for (const fates of [
    ['stored', 'stored'],
    ['stored', 'refused'],
    ['refused', 'stored'],
  ] as const) {
    const one = await openQueues()
    const left = [...fates]
    one.memory.judge(() => left.shift() ?? 'stored')
    const results = await Promise.all([
      settle(one, () => one.plan('1', ['a'], 'same')),
      settle(one, () => one.plan('2', ['a'], 'same')),
    ])
    t.same(
      results,
      fates.map((fate) => fate === 'stored'),
    )
    t.equal(one.queues.lengthOf('a').pending, 1)
    t.same((await one.reopen()).view('a'), one.view('a'), fates.join())
    t.same(one.plan('3', ['a'], 'same').changes, [])
    t.same(await one.drain('a'), [fates[0] === 'stored' ? '1' : '2'])
    await one.queues.tidy(() => false)
    one.trim()
    t.same([...one.memory.keys('work/'), ...one.memory.keys('journal/')], [])
  }
})

t.test('when both fail, the third starts anew', async (t) => {
  const one = await openQueues()
  one.memory.judge(() => 'refused')
  t.same(
    await Promise.all([
      settle(one, () => one.plan('1', ['a'], 'same')),
      settle(one, () => one.plan('2', ['a'], 'same')),
    ]),
    [false, false],
  )
  one.memory.judge(() => 'stored')
  t.ok(await settle(one, () => one.plan('3', ['a'], 'same')))
  t.same(await one.drain('a'), ['3'])
})

t.test('a repetition whose first one is delivered meanwhile leaves nothing behind', async (t) => {
  const one = await openQueues()
  const first = settle(one, () => one.plan('1', ['a'], 'same'))
  const second = settle(one, () => one.plan('2', ['a'], 'same'))
  await first
  t.same(await one.drain('a'), ['1'])
  await second
  t.same(await (await one.reopen()).drain('a'), [])
})

t.test('what is too old is forgotten, but not what is done again right now', async (t) => {
  const one = await openQueues()
  const marks = () => one.memory.keys('work-seen/').length
  await settle(one, () => one.plan('1', ['a'], 'one'))
  await settle(one, () => one.plan('2', ['a'], 'two'))
  one.time.now += hour / 2
  await settle(one, () => one.plan('3', ['a'], 'three'))
  t.equal(marks(), 6, 'two for each event: that it came, and what was done')
  one.time.now += hour / 2
  await settle(one, () => one.plan('4', ['a'], 'two'))
  t.equal(marks(), 4)
  t.same(one.plan('5', ['a'], 'two').changes, [], 'and remembered again')
  t.same((await one.reopen()).plan('5', ['a'], 'two').changes, [])
})

t.test('what is done again is not forgotten by other events, behind it or at the same time', async (t) => {
  for (const isBehind of [true, false]) {
    const one = await openQueues()
    for (const what of ['x/older', 'x/old', 'x/same']) await settle(one, () => one.plan(what, ['a'], what))
    one.time.now += hour
    const again = settle(one, () => one.plan('2', ['a'], 'x/same'))
    if (isBehind) await again
    await Promise.all(['3', '4'].map((id) => settle(one, () => one.plan(id, ['a'], `x/${id}`))))
    for (const node of [one, await one.reopen()]) t.same(node.plan('5', ['a'], 'x/same').changes, [])
  }
})

t.test('nor by one that retries what a failed commit was to forget', async (t) => {
  for (const isBehind of [true, false]) {
    const one = await openQueues()
    await settle(one, () => one.plan('1', ['a'], 'same'))
    one.time.now += hour
    const fates = ['refused', 'stored', 'stored'] as const
    let nth = 0
    one.memory.judge(() => fates[nth++] ?? 'stored')
    const failing = settle(one, () => one.plan('2', ['a'], 'forgets the old mark'))
    const again = settle(one, () => one.plan('3', ['a'], 'same'))
    t.equal(await failing, false)
    if (isBehind) await again
    await settle(one, () => one.plan('4', ['a'], 'retries'))
    await again
    for (const node of [one, await one.reopen()]) t.same(node.plan('5', ['a'], 'same').changes, [])
  }
})

t.test('a clock that was far ahead does not make the hub remember for ever', async (t) => {
  const one = await openQueues()
  one.time.now += 100 * 365 * 24 * hour
  await settle(one, () => one.plan('1', ['a'], 'same'))
  one.time.now -= 100 * 365 * 24 * hour
  await settle(one, () => one.plan('2', ['a'], 'same'))
  t.equal(one.queues.lengthOf('a').pending, 2)
  for (const id of ['3', '4']) await settle(one, () => one.plan(id, ['a'], id))
  const again = await one.reopen()
  again.time.now += hour
  for (const id of ['5', '6', '7']) await settle(again, () => again.plan(id, ['a'], id))
  t.equal(again.memory.keys('work-seen/').length, 6, 'those of the last three')
})

t.test('marks are stored with the work, never without', async (t) => {
  const { changes } = (await openQueues()).plan('1', ['a'], 'same')
  const keys = changes.map((change: Change) => ('put' in change ? change.put.split('/')[0] : ''))
  t.same(keys.sort(), ['journal', 'latest', 'work', 'work-seen', 'work-seen'])
})

t.test('a repetition has the id of the first, unless that was not stored', async (t) => {
  const one = await openQueues()
  const [first, second] = [one.plan('1', ['a'], 'same'), one.plan('2', ['a'], 'same')]
  t.same([first.id, second.id], ['1', '1'], 'while it is being stored')
  one.memory.judge(() => 'refused')
  t.same(await Promise.all([settle(one, () => first), settle(one, () => second)]), [false, false])
  const third = one.plan('3', [], 'same')
  t.equal(third.id, '3')
  one.memory.judge(() => 'stored')
  t.ok(await settle(one, () => third))
  t.equal(one.plan('4', ['a'], 'same').id, '3')
  const found = await one.reopen()
  const again = found.plan('5', ['a'], 'same')
  t.equal(again.id, '3', 'after a restart')
  await settle(found, () => again)
  t.same(await found.drain('a'), ['3'], 'what was not done for the first is done, with its id')
  found.time.now += hour
  const late = found.plan('6', ['a'], 'same')
  t.equal(late.id, '6')
  await settle(found, () => late)
  t.same(await found.drain('a'), ['6'])
})

t.test('work is never taken for done under another id', async (t) => {
  const one = await openQueues()
  await settle(one, () => one.plan('1', [], 'same'))
  one.time.now += hour - 1
  await settle(one, () => one.plan('2', ['a'], 'same'))
  one.time.now += 1
  await settle(one, () => one.plan('3', ['a'], 'same'))
  t.same(await one.drain('a'), ['1', '3'])
})

t.test('the store that did not answer, and has it all the same, is believed', async (t) => {
  const one = await openQueues()
  one.memory.judge(() => 'torn')
  t.notOk(await settle(one, () => one.plan('1', ['a'], 'same')))
  t.equal((await one.reopen()).plan('2', ['a'], 'same').id, '1')
})

t.test('of more events than can be remembered the oldest are forgotten', async (t) => {
  const memory = createMemoryStore()
  const repetitions = await createRepetitions({ store: memory.store, clock: () => 0 })
  const publish = async (...fingerprints: string[]) => {
    const all = fingerprints.map((fingerprint) => repetitions(fingerprint, () => `id of ${fingerprint}`))
    await commitTogether(
      memory.store,
      all.map(({ marks }) => marks),
    )
  }
  await publish('quiet/0')
  await publish(...Array.from({ length: 100_010 }, (_, number) => `loud/${number}`))
  t.ok(memory.keys('work-seen/').length <= 100_011)
  for (const fingerprint of ['loud/x', 'loud/y', 'other/z']) await publish(fingerprint)
  t.ok(memory.keys('work-seen/').length <= 100_011, 'no more come')
  const idOf = (fingerprint: string, by = repetitions) => by(fingerprint, () => 'new').id
  t.equal(idOf('loud/100009'), 'id of loud/100009')
  t.equal(idOf('loud/0'), 'new')
  t.equal(idOf('quiet/0'), 'id of quiet/0', 'but not those of another institution')
  t.equal(idOf('other/z'), 'id of other/z')
})

t.test('old marks are forgotten, one\u2019s own and what an institution that fell silent left', async (t) => {
  const memory = createMemoryStore()
  const time = { now: 0 }
  const repetitions = await createRepetitions({ store: memory.store, clock: () => time.now })
  const publish = async (fingerprint: string) => {
    await commitTogether(memory.store, [repetitions(fingerprint, () => fingerprint).marks])
  }
  for (const number of [1, 2, 3]) await publish(`silent/${number}`)
  await publish('busy/1')
  time.now += hour / 2
  await publish('calm/1')
  await publish('busy/2')
  time.now += hour / 2
  await publish('busy/3')
  await publish('busy/4')
  t.same(
    memory.keys('work-seen/'),
    ['busy/2', 'busy/3', 'busy/4', 'calm/1'].map((key) => `work-seen/${key}`),
  )
})

t.test('marks that could not be forgotten are forgotten with the next event', async (t) => {
  const one = await openQueues()
  const marks = () => one.memory.keys('work-seen/').length
  await settle(one, () => one.plan('1', ['a'], 'one'))
  one.time.now += hour
  one.memory.judge(() => 'refused')
  await settle(one, () => one.plan('2', ['a'], 'two'))
  t.equal(marks(), 2)
  one.memory.judge(() => 'stored')
  await settle(one, () => one.plan('3', ['a'], 'three'))
  t.same(marks(), 2)
  t.notOk(one.memory.keys('work-seen/').some((key) => key.includes('one')))
})

/** One of several nodes. It plans one piece of work for each event. */
async function openNode(t: Test, space: SharedSpace, name: string, time = { now: 0 }) {
  const store = space.openFollowed(t)
  const repetitions = await createRepetitions({ store, clock: () => time.now })
  store.start()
  let decisions = 0
  return {
    store,
    decisions: () => decisions,
    accept: (fingerprint: string): Promise<string> =>
      decideWithRetries(async () => {
        const { id, once, marks } = repetitions(fingerprint, () => `${name}-${++decisions}`)
        const work = { changes: [{ put: `work/${name}-${decisions}`, value: '' }], show() {} }
        await commitTogether(store, [() => ({ changes: once('webhook', () => work) }), marks])
        return id
      }),
    async work(): Promise<string[]> {
      const keys: string[] = []
      for await (const [key] of store.range('work/')) keys.push(key)
      return keys
    },
  }
}

t.test('two nodes that get an event at once give it one id, and do its work once', async (t) => {
  const space = createSharedSpace()
  const time = { now: 0 }
  const [a, b] = [await openNode(t, space, 'a', time), await openNode(t, space, 'b', time)]
  for (const round of [1, 2]) {
    const ids = await Promise.all([a.accept('x/same'), b.accept('x/same')])
    t.equal(new Set(ids).size, 1)
    t.equal((await a.work()).length, round)
    await settled(a.store, b.store)
    time.now += hour
  }
})

t.test('an event that comes again after another node forgot it is not forgotten for that', async (t) => {
  const space = createSharedSpace()
  const time = { now: 0 }
  const [a, b] = [await openNode(t, space, 'a', time), await openNode(t, space, 'b', time)]
  for (const event of ['x/older', 'x/old', 'x/same']) await a.accept(event)
  await settled(a.store, b.store)
  time.now += hour
  for (const other of ['x/1', 'x/2']) await b.accept(other)
  await settled(b.store, a.store)
  for (const event of ['x/same', 'x/3', 'x/4']) await a.accept(event)
  await settled(a.store, b.store)
  const works = await a.work()
  await b.accept('x/same')
  t.same(await b.work(), works)
})

t.test('an event that a node could not confirm, and stored, keeps its id at another node', async (t) => {
  const space = createSharedSpace()
  const [a, b] = [await openNode(t, space, 'a'), await openNode(t, space, 'b')]
  a.store.cut('applied')
  await t.rejects(a.accept('x/same'))
  const id = await b.accept('x/same')
  t.equal(id, 'a-1')
  a.store.restore()
  await settled(a.store)
  t.equal(await a.accept('x/same'), id)
  t.equal((await b.work()).length, 1)
})

t.test('a repetition on the node of the first is stored behind it, in one go', async (t) => {
  const node = await openNode(t, createSharedSpace(), 'a')
  let commits = 0
  const { commit } = node.store
  t.teardown(() => Object.assign(node.store, { commit }))
  Object.assign(node.store, {
    commit: (...given: Parameters<typeof commit>) => {
      commits++
      return commit(...given)
    },
  })
  t.same(await Promise.all([node.accept('x/same'), node.accept('x/same')]), ['a-1', 'a-1'])
  t.equal(commits, 2)
})

t.test('an event is the same when kind, institution and bytes are', async (t) => {
  const bytes = Buffer.from('{}')
  const one = fingerprintOf('playing', 'institution', bytes)
  t.equal(fingerprintOf('playing', 'institution', Buffer.from('{}')), one)
  t.not(fingerprintOf('next', 'institution', bytes), one)
  t.not(fingerprintOf('playing', 'other', bytes), one)
  t.not(fingerprintOf('playing', 'institution', Buffer.from('{ }')), one)
  t.not(fingerprintOf('play', 'inginstitution', bytes), one)
})

t.test('a repetition says so, also while the first one is being stored', async (t) => {
  const { store } = createMemoryStore()
  const repetitions = await createRepetitions({ store, clock: () => hour })
  const begin = (fingerprint: string) => repetitions(fingerprint, () => 'new')
  const first = begin('same')
  t.equal(first.isRepeated, false)
  const storing = commitTogether(store, [first.marks])
  t.equal(begin('same').isRepeated, true)
  await storing
  t.equal(begin('same').isRepeated, true)
  t.equal(begin('other').isRepeated, false)
})

t.test(
  'a repetition of an event that was completed from the feed finds how the first was stored',
  async (t) => {
    const { memory, time } = await openQueues()
    const parts = { store: memory.store, clock: () => time.now }
    const repetitions = await createRepetitions(parts)
    const payload = Buffer.from('as stored')
    const first = repetitions('a/b', () => '1')
    t.equal(first.first, undefined)
    first.keepAsStored(payload)
    const message = { put: 'journal/', value: 'x', numbered: { nth: 0, at: 'key' as const } }
    const storing = commitTogether(memory.store, [() => ({ changes: [message] }), first.marks])
    t.strictSame(repetitions('a/b', () => '2').first, { payload }, 'while it is being stored: from memory')
    await storing
    const position = await memory.store.lastNumber()
    t.ok(position > 0)
    t.match(
      repetitions('a/b', () => '3'),
      { id: '1', first: { position } },
      'then in the journal',
    )
    const reopened = await createRepetitions({ ...parts, store: memory.crashed().store })
    t.match(
      reopened('a/b', () => '4'),
      { id: '1', first: { position } },
      'also after a restart',
    )

    const failing = repetitions('a/c', () => '5')
    failing.keepAsStored(payload)
    memory.judge(() => 'refused')
    await t.rejects(commitTogether(memory.store, [failing.marks]))
    memory.judge(() => 'stored')
    t.equal(repetitions('a/c', () => '6').first, undefined, 'what was not stored has no form')
    await commitTogether(memory.store, [repetitions('a/d', () => '7').marks])
    t.match(
      repetitions('a/d', () => '8'),
      { id: '7', first: undefined },
      'an event of the document’s form has none',
    )
    time.now += hour
    t.equal(repetitions('a/b', () => '9').first, undefined, 'after an hour it is a new event')
  },
)
