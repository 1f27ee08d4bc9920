import fc from 'fast-check'
import t from 'tap'
import { createMemoryStore } from '../memory-store.ts'
import { attempt, hour, messagesAt, type OpenQueues, openQueues } from '../open-queues.ts'

/*
 * Webhooks of one livestream get each event alike. One record stands for all of them, until something happens to the
 * event in one of their queues.
 */

const prefixes = ['work/', 'work-shared/', 'work-set/', 'work-set-used/', 'work-place/']

/** How many records of each kind are stored. */
function stored({ memory }: OpenQueues): Record<string, number> {
  const counts = prefixes.map((prefix) => [prefix, memory.keys(prefix).length] as const)
  return Object.fromEntries(counts.filter(([, count]) => count > 0))
}

/** The ids of the events that wait in a queue, in order. */
function waitingIn({ queues }: OpenQueues, name: string): string {
  return queues
    .items(name)
    .map(({ messageId }) => messageId)
    .join(' ')
}

async function openWith(names: readonly string[], ...messageIds: string[]): Promise<OpenQueues> {
  const one = await openQueues({ alike: true })
  for (const id of messageIds) await one.append(id, ...names)
  return one
}

const several = Array.from({ length: 100 }, (_, index) => `hook-${index}`)

t.test('an event for a hundred webhooks is one record, in memory one object', async (t) => {
  const one = await openWith(several, '1', '2', '3')
  t.same(stored(one), { 'work-shared/': 3, 'work-set/': 1, 'work-set-used/': 1 })
  for (const queues of [one, await one.reopen()]) {
    const [first] = queues.queues.items('hook-0')
    t.ok(several.every((name) => queues.queues.items(name)[0] === first))
    t.same(
      several.map((name) => waitingIn(queues, name)),
      several.map(() => '1 2 3'),
    )
    t.equal([...queues.queues.everyItem()].length, 3)
  }
})

t.test('a webhook alone has records of its own', async (t) => {
  const one = await openWith(['hook'], '1', '2')
  t.same(stored(one), { 'work/': 2 })
})

t.test('what is acknowledged in order costs no record of its own', async (t) => {
  const one = await openWith(['a', 'b'], '1', '2', '3')
  await one.queues.acknowledge('a', one.head('a'))
  await one.queues.acknowledge('a', one.head('a'))
  t.same(stored(one), { 'work-shared/': 3, 'work-set/': 1, 'work-set-used/': 1, 'work-place/': 1 })
  for (const queues of [one, await one.reopen()]) {
    t.equal(waitingIn(queues, 'a'), '3')
    t.equal(waitingIn(queues, 'b'), '1 2 3')
  }
})

t.test('what was tried, and what waits before an item that goes, has a record of its own', async (t) => {
  const one = await openWith(['a', 'b'], '1', '2', '3', '4')
  await one.queues.postpone('a', one.head('a'), attempt('1'), { refused: false })
  t.match(stored(one), { 'work/': 1, 'work-place/': 1 })
  const [, , third] = one.queues.items('a')
  if (third) await one.queues.acknowledge('a', third)
  t.match(stored(one), { 'work/': 2 })
  for (const queues of [one, await one.reopen()]) {
    t.equal(waitingIn(queues, 'a'), '1 2 4')
    t.equal(waitingIn(queues, 'b'), '1 2 3 4')
    t.equal(queues.head('a').tries, 1)
    t.equal(queues.head('b').tries, 0)
  }
})

t.test('when the last queue is done, nothing is left, and the journal may remove the message', async (t) => {
  const one = await openWith(['a', 'b'], '1', '2')
  await one.drain('a')
  await one.queues.giveUpAll('b', 'no reason')
  t.notOk(one.journal.neededByQueues.has(1))
  await one.queues.tidy(() => false)
  t.same(stored(one), {})
  t.equal(await one.queues.replay('b'), 2)
  t.same(await one.drain('b'), ['1', '2'])
})

t.test('an event needed by one paused queue alone stays in the journal', async (t) => {
  const one = await openWith(['a', 'b'], '1')
  await one.drain('a')
  await one.queues.tidy(() => false)
  one.trim()
  t.same(await (await one.reopen()).drain('b'), ['1'])
})

t.test('a queue that is removed keeps its place as long as others need its items', async (t) => {
  const one = await openWith(['a', 'b'], '1', '2')
  await one.queues.drop('a')
  await one.queues.tidy(() => false)
  const found = await one.reopen()
  t.same(found.queues.names(), ['b'])
  await found.drain('b')
  await found.queues.tidy(() => false)
  t.same(stored(found), {})
})

t.test('a queue above its limit loses the oldest items, other queues none', async (t) => {
  const one = await openQueues({ alike: true, perQueue: 3 })
  for (const id of ['1', '2', '3']) await one.append(id, 'a', 'b')
  await one.drain('b')
  for (const id of ['4', '5']) await one.append(id, 'a', 'b')
  await one.queues.tidy(() => false)
  t.equal(waitingIn(one, 'a'), '1 4 5', 'the head may be under way')
  t.equal(one.queues.lengthOf('a').dropped, 2)
  t.equal(waitingIn(one, 'b'), '4 5')
  t.equal(waitingIn(await one.reopen(), 'a'), '1 4 5')
})

t.test('a new webhook that begins earlier has all in the order of the journal', async (t) => {
  const one = await openWith(['other'], '1', '2')
  for (const id of ['3', '4']) await one.append(id, 'a', 'b')
  await one.queues.begin('a', messagesAt(1, 2, 3), { check: 'none', when: 'absent' })
  for (const queues of [one, await one.reopen()]) {
    t.equal(waitingIn(queues, 'a'), '1 2 3 4')
    t.equal(waitingIn(queues, 'b'), '3 4')
  }
})

t.test('items that a former release has stored go on beside shared ones', async (t) => {
  const former = await openQueues()
  for (const id of ['1', '2']) await former.append(id, 'a', 'b')
  t.same(stored(former), { 'work/': 4 })
  const one = await openQueues({ memory: former.memory.crashed(), alike: true, now: former.time.now + hour })
  await one.append('3', 'a', 'b')
  for (const queues of [one, await one.reopen()]) {
    t.equal(waitingIn(queues, 'a'), '1 2 3')
    t.same(await queues.drain('b'), ['1', '2', '3'])
  }
})

t.test('a set that is removed is stored again by the event that is accepted meanwhile', async (t) => {
  const one = await openWith(['a', 'b'], '1')
  await one.drain('a')
  await one.drain('b')
  // Each commit takes a turn. So the event comes before, between and behind those of the sweep.
  for (let turns = 0; turns < 12; turns++) {
    const swept = one.queues.tidy(() => false)
    for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
    await Promise.all([swept, one.append(`after ${turns}`, 'a', 'b')])
    const found = await one.reopen()
    for (const name of ['a', 'b']) t.same(await found.drain(name), [`after ${turns}`])
    for (const name of ['a', 'b']) t.same(await one.drain(name), [`after ${turns}`])
  }
})

/** A step of one queue. */
const step = fc.record({
  act: fc.constantFrom(
    'append',
    'acknowledge',
    'second',
    'postpone',
    'aside',
    'giveUp',
    'replay',
    'drop',
    'tidy',
  ),
  queue: fc.constantFrom('a', 'b', 'c'),
  to: fc.constantFrom(['a', 'b'], ['b', 'c'], ['a', 'b', 'c'], ['c']),
})

t.test('a kill between any two commits loses nothing, and brings nothing twice into a queue', async (t) => {
  const holds = fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
    const memory = createMemoryStore()
    const kills: { memory: ReturnType<typeof createMemoryStore>; owed: Map<string, Set<string>> }[] = []
    const owed = new Map(['a', 'b', 'c'].map((name) => [name, new Set<string>()]))
    const { commit } = memory.store
    memory.store.commit = async (...of) => {
      const first = await commit(...of)
      kills.push({
        memory: memory.crashed(),
        owed: new Map([...owed].map(([name, ids]) => [name, new Set(ids)])),
      })
      return first
    }
    const one = await openQueues({ memory, alike: true, perQueue: 100 })
    let count = 0
    for (const { act, queue, to } of steps) {
      const { head, second } = one.queues.waiting(queue)
      const item = act === 'second' ? second : head
      one.time.now += 1_000
      if (act === 'append') {
        const id = String(++count)
        await one.append(id, ...to)
        for (const name of to) owed.get(name)?.add(id)
      } else if (act === 'tidy') await one.queues.tidy(() => false)
      else if (act === 'replay') await one.queues.replay(queue)
      else if (act === 'drop') {
        owed.get(queue)?.clear()
        await one.queues.drop(queue)
      } else if (item && (act === 'acknowledge' || act === 'second')) {
        owed.get(queue)?.delete(item.messageId)
        await one.queues.acknowledge(queue, item)
      } else if (item && act === 'giveUp') await one.queues.giveUp(queue, [item], 'no reason')
      else if (item) {
        const how = { refused: true, ...(act === 'aside' && { asideUntil: one.time.now + hour / 2 }) }
        await one.queues.postpone(queue, item, attempt(item.messageId), how)
      }
    }
    for (const { memory: left, owed } of kills) {
      const found = await openQueues({ memory: left, alike: true, now: one.time.now, perQueue: 100 })
      for (const [name, ids] of owed) {
        await found.queues.replay(name)
        const given = await found.drain(name)
        const missing = [...ids].filter((id) => !given.includes(id))
        if (missing.length > 0 || new Set(given).size < given.length || given.includes('wrong payload'))
          throw new Error(`owed to ${name}: ${[...ids]}, found: ${given}`)
      }
    }
  })
  await t.resolves(fc.assert(holds, { numRuns: 100 }))
})
