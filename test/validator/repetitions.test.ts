import t from 'tap'
import type { Change } from '../../store/store.ts'
import { createRepetitions, fingerprintOf } from '../../validator/repetitions.ts'
import { createMemoryStore } from '../delivery/memory-store.ts'
import { hour, type OpenQueues, openQueues, type Planned } from '../delivery/open-queues.ts'

/** Stores what was planned and tells of it. */
async function settle({ memory }: OpenQueues, planned: Planned): Promise<boolean> {
  const stored = await memory.store.commit(planned.changes).then(
    () => true,
    () => false,
  )
  if (stored) planned.stored()
  else planned.failed()
  return stored
}

t.test('a repetition causes no work, within an hour, also after a restart', async (t) => {
  const one = await openQueues()
  await settle(one, one.plan('1', ['a', 'b'], 'same'))
  const again = one.plan('2', ['a', 'b'], 'same')
  t.same(again.changes, [])
  await settle(one, again)
  t.equal(one.queues.lengthOf('a').pending, 1)
  const found = await one.reopen()
  t.same(found.plan('3', ['a', 'b'], 'same').changes, [])
  t.not(found.plan('3', ['a', 'b'], 'other').changes.length, 0)

  const partly = found.plan('3', ['a', 'c'], 'same')
  await settle(found, partly)
  t.match([found.queues.lengthOf('a').pending, found.queues.lengthOf('c').pending], [1, 1])

  found.time.now += hour
  await settle(found, found.plan('4', ['a'], 'same'))
  t.same(await found.drain('a'), ['1', '4'])
})

t.test('the first one is being stored: the repetition is stored with it, and works once', async (t) => {
  for (const fates of [
    ['stored', 'stored'],
    ['stored', 'refused'],
    ['refused', 'stored'],
  ] as const) {
    const one = await openQueues()
    const left = [...fates]
    one.memory.judge(() => left.shift() ?? 'stored')
    const results = await Promise.all([
      settle(one, one.plan('1', ['a'], 'same')),
      settle(one, one.plan('2', ['a'], 'same')),
    ])
    t.same(
      results,
      fates.map((fate) => fate === 'stored'),
    )
    t.equal(one.queues.lengthOf('a').pending, 1)
    t.same((await one.reopen()).view('a'), one.view('a'), fates.join())
    t.same(one.plan('3', ['a'], 'same').changes, [])
    t.same(await one.drain('a'), ['1'])
    await one.queues.tidy(() => false)
    t.same([...one.memory.keys('work/'), ...one.memory.keys('work-body/')], [])
  }
})

t.test('when both fail, the third starts anew', async (t) => {
  const one = await openQueues()
  one.memory.judge(() => 'refused')
  t.same(
    await Promise.all([settle(one, one.plan('1', ['a'], 'same')), settle(one, one.plan('2', ['a'], 'same'))]),
    [false, false],
  )
  one.memory.judge(() => 'stored')
  t.ok(await settle(one, one.plan('3', ['a'], 'same')))
  t.same(await one.drain('a'), ['3'])
})

t.test('a repetition whose first one is delivered meanwhile leaves nothing behind', async (t) => {
  const one = await openQueues()
  const first = settle(one, one.plan('1', ['a'], 'same'))
  const second = settle(one, one.plan('2', ['a'], 'same'))
  await first
  t.same(await one.drain('a'), ['1'])
  await second
  t.same(await (await one.reopen()).drain('a'), [])
})

t.test('what is too old is forgotten, but not what is done again right now', async (t) => {
  const one = await openQueues()
  const marks = () => one.memory.keys('work-seen/').length
  await settle(one, one.plan('1', ['a'], 'one'))
  await settle(one, one.plan('2', ['a'], 'two'))
  one.time.now += hour / 2
  await settle(one, one.plan('3', ['a'], 'three'))
  t.equal(marks(), 6, 'two for each event: that it came, and what was done')
  one.time.now += hour / 2
  await settle(one, one.plan('4', ['a'], 'two'))
  t.equal(marks(), 4)
  t.same(one.plan('5', ['a'], 'two').changes, [], 'and remembered again')
  t.same((await one.reopen()).plan('5', ['a'], 'two').changes, [])
})

t.test('a clock that was far ahead does not make the hub remember for ever', async (t) => {
  const one = await openQueues()
  one.time.now += 100 * 365 * 24 * hour
  await settle(one, one.plan('1', ['a'], 'same'))
  one.time.now -= 100 * 365 * 24 * hour
  await settle(one, one.plan('2', ['a'], 'same'))
  t.equal(one.queues.lengthOf('a').pending, 2)
  for (const id of ['3', '4']) await settle(one, one.plan(id, ['a'], id))
  const again = await one.reopen()
  again.time.now += hour
  for (const id of ['5', '6', '7']) await settle(again, again.plan(id, ['a'], id))
  t.equal(again.memory.keys('work-seen/').length, 6, 'those of the last three')
})

t.test('marks are stored with the work, never without', async (t) => {
  const { changes } = (await openQueues()).plan('1', ['a'], 'same')
  const keys = changes.map((change: Change) => ('put' in change ? change.put.split('/')[0] : ''))
  t.same(keys.sort(), ['work', 'work-body', 'work-seen', 'work-seen'])
})

t.test('a repetition has the id of the first, unless that was not stored', async (t) => {
  const one = await openQueues()
  const [first, second] = [one.plan('1', ['a'], 'same'), one.plan('2', ['a'], 'same')]
  t.same([first.id, second.id], ['1', '1'], 'while it is being stored')
  one.memory.judge(() => 'refused')
  t.same(await Promise.all([settle(one, first), settle(one, second)]), [false, false])
  const third = one.plan('3', [], 'same')
  t.equal(third.id, '3')
  one.memory.judge(() => 'stored')
  t.ok(await settle(one, third))
  t.equal(one.plan('4', ['a'], 'same').id, '3')
  const found = await one.reopen()
  const again = found.plan('5', ['a'], 'same')
  t.equal(again.id, '3', 'after a restart')
  await settle(found, again)
  t.same(await found.drain('a'), ['3'], 'what was not done for the first is done, with its id')
  found.time.now += hour
  const late = found.plan('6', ['a'], 'same')
  t.equal(late.id, '6')
  await settle(found, late)
  t.same(await found.drain('a'), ['6'])
})

t.test('work is never taken for done under another id', async (t) => {
  const one = await openQueues()
  await settle(one, one.plan('1', [], 'same'))
  one.time.now += hour - 1
  await settle(one, one.plan('2', ['a'], 'same'))
  one.time.now += 1
  await settle(one, one.plan('3', ['a'], 'same'))
  t.same(await one.drain('a'), ['1', '3'])
})

t.test('the store that did not answer, and has it all the same, is believed', async (t) => {
  const one = await openQueues()
  one.memory.judge(() => 'torn')
  t.notOk(await settle(one, one.plan('1', ['a'], 'same')))
  t.equal((await one.reopen()).plan('2', ['a'], 'same').id, '1')
})

t.test('of more events than can be remembered the oldest are forgotten', async (t) => {
  const memory = createMemoryStore()
  const repetitions = await createRepetitions({ store: memory.store, clock: () => 0 })
  const publish = async (fingerprint: string) => {
    const repetition = repetitions(fingerprint, () => `id of ${fingerprint}`)
    await memory.store.commit(repetition.marks())
    repetition.stored()
    return repetition.id
  }
  const events = Array.from({ length: 100_010 }, (_, number) => String(number))
  await Promise.all(events.map(publish))
  t.ok(memory.keys('work-seen/').length <= 100_010)
  for (const fingerprint of ['x', 'y', 'z']) await publish(fingerprint)
  t.ok(memory.keys('work-seen/').length <= 100_010, 'no more come')
  t.equal(repetitions('100009', () => 'new').id, 'id of 100009')
  t.equal(repetitions('0', () => 'new').id, 'new')
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
