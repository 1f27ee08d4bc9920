import t from 'tap'
import { keyOf, withNumber } from '../../../store/commit.ts'
import type { Change, Store } from '../../../store/store.ts'
import { createMemoryStore } from '../memory-store.ts'
import { attempt, messagesAt, openQueues } from '../open-queues.ts'

/*
 * Another node changes a queue between this node's look at the queue and this node's commit.
 */

/** The queues of two nodes on one store. The other node receives each commit before the commit resolves. */
async function openTwo(alike = false) {
  const memory = createMemoryStore()
  const listeners: { node: number; prefix: string; listener: Parameters<Store['onOthers']>[1] }[] = []
  const third = 3
  let whileStarting: (() => Promise<unknown>) | undefined
  const told: [key: string, value: Buffer | undefined][] = []
  let meanwhile: ((changes: readonly Change[]) => Promise<void>) | undefined
  const storeOf = (node: number): Store => ({
    ...memory.store,
    isShared: true,
    async lastNumber() {
      const number = await memory.store.lastNumber()
      if (node === third) await whileStarting?.()
      return number
    },
    onOthers: (prefix, listener) => void listeners.push({ node, prefix, listener }),
    async commit(changes) {
      const change = meanwhile
      meanwhile = undefined
      await change?.(changes)
      const first = await memory.store.commit(changes)
      for (const change of changes
        .map((change) => withNumber(change, first))
        .filter((one) => !('check' in one))) {
        const [key, value] = [keyOf(change), 'put' in change ? Buffer.from(change.value) : undefined]
        told.push([key, value])
        tell(key, value, (other) => other !== node && other !== third)
      }
      return first
    },
  })
  function tell(key: string, value: Buffer | undefined, isTold: (node: number) => boolean): void {
    for (const { node, prefix, listener } of listeners)
      if (isTold(node) && key.startsWith(prefix)) listener(key, value)
  }
  const open = (slot: number) => openQueues({ memory: { ...memory, store: storeOf(slot) }, slot, alike })
  const [one, two] = [await open(1), await open(2)]
  return {
    memory,
    one,
    two,
    /**
     * Starts a node, and runs `change` whenever it asks for the last number. The node then hears of all commits one by
     * one: of some, its load has found the outcome.
     */
    async start(change?: () => Promise<unknown>) {
      whileStarting = change
      const node = await open(third)
      return {
        node,
        hear: () =>
          told.map(
            ([key, value]) =>
              () =>
                tell(key, value, (one) => one === third),
          ),
      }
    },
    /** Runs `change` once, before the next commit of either node, or before a later one: `skipped` go first. */
    before(change: (changes: readonly Change[]) => Promise<void>, skipped = 0): void {
      let left = skipped
      const look: typeof meanwhile = async (changes) => {
        if (left-- === 0) return change(changes)
        meanwhile = look
      }
      meanwhile = look
    },
  }
}

t.test('what is given up while its queue is removed leaves nothing', async (t) => {
  const { memory, one, two, before } = await openTwo()
  await one.append('a', 'hook')
  before(() => two.queues.drop('hook'))
  await one.queues.giveUpAll('hook', 'it waited too long')
  t.same([memory.keys('work/'), memory.keys('work-dead/')], [[], []])
  t.same(one.queues.deadLetters('hook'), [])
})

t.test('a queue that is removed while items are given up leaves nothing', async (t) => {
  const { memory, one, two, before } = await openTwo()
  await one.append('a', 'hook')
  before(async () => void (await one.queues.giveUpAll('hook', 'it waited too long')))
  await two.queues.drop('hook')
  t.same([memory.keys('work/'), memory.keys('work-dead/')], [[], []])
  t.same(two.queues.names(), [])
})

t.test('two nodes that repeat the same at once add it once', async (t) => {
  const { memory, one, two } = await openTwo()
  for (const id of ['a', 'b', 'c']) await one.append(id, 'other')
  const repeat = (node: typeof one) => node.queues.repeat('hook', messagesAt(1, 2, 3), async () => undefined)
  const counts = await Promise.all([repeat(one), repeat(two)])
  t.equal(memory.keys('work/hook/').length, 3)
  t.equal(counts[0] + counts[1], 3)
  t.equal(one.queues.lengthOf('hook').pending, 3)
})

t.test('two nodes accept events for different sets of queues, and each has those of both', async (t) => {
  const { memory, one, two } = await openTwo(true)
  await one.append('1', 'a', 'b')
  await two.append('2', 'b', 'c')
  await Promise.all([one.append('3', 'a', 'b', 'c'), two.append('4', 'a', 'b')])
  const waiting = { a: '1 3 4', b: '1 2 3 4', c: '2 3' }
  const later = await openQueues({ memory: memory.crashed(), alike: true })
  for (const node of [one, two, later]) {
    for (const [name, ids] of Object.entries(waiting)) {
      const found = node.queues.items(name).map(({ messageId }) => messageId)
      t.same(found.sort().join(' '), ids)
    }
  }
  t.equal(memory.keys('work-set/').length, 3)
})

t.test('a start has the order of acceptance, though a node had not heard of the event before', async (t) => {
  const memory = createMemoryStore()
  const now = Date.parse('2026-06-01T12:00:00Z')
  const open = (slot: number, ahead: number) => openQueues({ memory, slot, now: now + ahead, alike: true })
  // On this store, nodes do not hear of each other.
  const [ahead, right] = [await open(1, 5_000), await open(2, 0)]
  await ahead.append('1', 'a')
  await right.append('2', 'a')
  await ahead.append('3', 'a', 'b')
  await right.append('4', 'a')
  await right.append('5', 'a', 'b')
  await ahead.append('6', 'a')
  await right.append('7', 'a')
  const later = await openQueues({ memory: memory.crashed(), now: now + 10_000, alike: true })
  await later.queues.acknowledge('a', later.head('a'))
  await later.queues.repeat('a', messagesAt(1), async () => undefined)
  const repeated = await later.reopen()
  t.same(await repeated.drain('a'), ['2', '3', '4', '5', '6', '7', '1'], 'what is repeated stays at the end')
})

t.test('what two nodes do to one queue at once is done once, and nothing comes back', async (t) => {
  for (const other of ['acknowledge', 'giveUp', 'postpone'] as const) {
    const { memory, one, two, before } = await openTwo(true)
    for (const id of ['1', '2', '3']) await one.append(id, 'a', 'b')
    const [first, second] = one.queues.items('a')
    if (!first || !second) throw new Error('too few items')
    before(async () => {
      if (other === 'acknowledge') await two.queues.acknowledge('a', first)
      else if (other === 'giveUp') await two.queues.giveUp('a', [first], 'no reason')
      else await two.queues.postpone('a', first, attempt('1'), { refused: false })
    })
    await one.queues.acknowledge('a', second)
    const later = await openQueues({ memory: memory.crashed(), alike: true })
    const left = other === 'postpone' ? ['1', '3'] : ['3']
    for (const node of [one, two, later]) {
      t.same(
        node.queues.items('a').map(({ messageId }) => messageId),
        left,
        other,
      )
      t.equal(node.queues.items('b').length, 3)
      t.equal(node.queues.deadLetters('a').length, other === 'giveUp' ? 1 : 0)
    }
  }
})

t.test('an attempt with an item that another node has removed does not bring it back', async (t) => {
  for (const alike of [true, false]) {
    const { memory, one, two, before } = await openTwo(alike)
    await one.append('1', 'a', ...(alike ? ['b'] : []))
    const item = one.head('a')
    before(() => two.queues.drop('a'))
    const noted = { put: 'work-attempt/a/1', value: '' }
    await one.queues.postpone('a', item, attempt('1'), { refused: false }, [noted])
    for (const node of [one, two]) t.same(node.queues.items('a'), [])
    t.same(memory.keys('work/'), [])
    t.same(memory.keys('work-attempt/'), [noted.put], 'what is noted of the attempt is stored all the same')
  }
})

t.test('an attempt is counted though another node has moved on its queue meanwhile', async (t) => {
  const { one, two, before } = await openTwo(true)
  for (const id of ['1', '2']) await one.append(id, 'a', 'b')
  const [first, second] = one.queues.items('a')
  if (!first || !second) throw new Error('too few items')
  before(() => two.queues.acknowledge('a', first))
  await one.queues.postpone('a', second, attempt('2'), { refused: false })
  for (const node of [one, two]) t.match(node.queues.items('a'), [{ messageId: '2', tries: 1 }])
})

t.test('an item that was removed before a node started does not wait there, whatever it hears', async (t) => {
  const { one, start } = await openTwo(true)
  await one.append('1', 'a', 'b')
  for (const name of ['a', 'b']) await one.drain(name)
  await one.queues.tidy(() => false)
  const { node, hear } = await start()
  for (const commit of hear()) {
    commit()
    t.same(node.queues.names(), [])
  }
})

t.test('an item that is accepted while a node loads waits there once', async (t) => {
  const { one, start } = await openTwo(true)
  let count = 0
  const { node, hear } = await start(() => one.append(`${++count}`, 'a', 'b'))
  for (const commit of hear()) commit()
  const waiting = [one, node].map(({ queues }) => queues.items('a').map(({ messageId }) => messageId))
  t.ok(count > 0)
  t.same(waiting[1], waiting[0])
})

t.test('who has lost the lock of repetitions meanwhile adds nothing', async (t) => {
  const { memory, one, before } = await openTwo()
  await one.append('1', 'other')
  const lost = { put: 'lock/work-replays', value: JSON.stringify({ number: 9, claim: 'another node' }) }
  before(async () => void (await memory.store.commit([lost])), 1)
  const repeated = one.queues.repeat('hook', messagesAt(1), async () => undefined)
  await t.rejects(repeated, { name: 'ConditionFailed' })
  t.same(memory.keys('work/hook/'), [])
})

t.test('a dead letter that two nodes replay at once is one item, and the others follow', async (t) => {
  const { memory, one, two, before } = await openTwo()
  for (const id of ['1', '2']) await one.append(id, 'hook')
  await one.queues.giveUpAll('hook', 'it waited too long')
  before(async () => void (await two.queues.replay('hook', '1')))
  t.equal(await one.queues.replay('hook'), 1)
  for (const node of [one, two]) {
    const waiting = node.queues.items('hook').map(({ messageId }) => messageId)
    t.same(waiting, ['1', '2'])
  }
  t.same(memory.keys('work-dead/'), [])
})

t.test('a set that one node removes is there for the event that another accepts meanwhile', async (t) => {
  for (let skipped = 0; skipped < 4; skipped++) {
    const { memory, one, two, before } = await openTwo(true)
    await one.append('1', 'a', 'b')
    for (const name of ['a', 'b']) await one.drain(name)
    before(async () => void (await two.append('2', 'a', 'b')), skipped)
    await one.queues.tidy(() => false)
    // The pipeline decides again about an event whose set was removed meanwhile.
    const isThere = two.queues.names().length > 0 || (await two.append('2', 'a', 'b'))
    t.ok(isThere)
    const later = await openQueues({ memory: memory.crashed(), alike: true })
    for (const node of [one, two, later]) {
      for (const name of ['a', 'b']) {
        t.same(
          node.queues.items(name).map(({ messageId }) => messageId),
          ['2'],
          `before commit ${skipped}`,
        )
      }
    }
  }
  const { memory, one, two, before } = await openTwo(true)
  await one.append('1', 'a', 'b')
  for (const name of ['a', 'b']) await one.drain(name)
  before(() => two.queues.tidy(() => false))
  t.notOk(await one.append('2', 'a', 'b'), 'the set has gone')
  t.ok(await one.append('2', 'a', 'b'))
  const later = await openQueues({ memory: memory.crashed(), alike: true })
  for (const node of [one, two, later]) t.same(node.queues.items('b').length, 1)
})
