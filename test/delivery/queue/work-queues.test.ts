import t from 'tap'
import { workLimits } from '../../../delivery/queue/limits.ts'
import { commitTogether } from '../../../store/commit-together.ts'
import type { Change } from '../../../store/store.ts'
import { attempt, hour, messagesAt, openQueues } from '../open-queues.ts'

t.test(
  'what is noted of a delivery is stored with its end, though the item has gone meanwhile',
  async (t) => {
    const { queues, memory, append, head } = await openQueues()
    await append('1', 'a')
    const item = head('a')
    for (const noted of ['work-attempt/a/1', 'work-attempt/a/2']) {
      await queues.acknowledge('a', item, [{ put: noted, value: '' }])
      t.ok(memory.keys('work-attempt/').includes(noted))
    }
  },
)

t.test('a queue that is dropped while messages are repeated into it is empty', async (t) => {
  const { queues, memory, append } = await openQueues()
  await append('1', 'other')
  await Promise.all([queues.repeat('a', messagesAt(1), async () => undefined), queues.drop('a')])
  t.same([queues.items('a'), memory.keys('work/a/')], [[], []])
})

t.test('after every step a restart finds what memory has', async (t) => {
  const one = await openQueues()
  const { queues, time } = one
  const same = async (step: string) => {
    const found = await one.reopen()
    for (const name of ['a', 'b']) t.same(found.view(name), one.view(name), `${step}, queue ${name}`)
  }
  for (const id of ['1', '2', '3', '4']) await one.append(id, 'a', 'b')
  await same('appended')
  await queues.acknowledge('a', one.head('a'))
  await same('acknowledged')
  await queues.postpone('a', one.head('a'), attempt('2'), { refused: false })
  t.match(one.head('a'), { messageId: '2', tries: 1, refusals: 0, attempts: [{ messageId: '2' }] })
  await same('postponed')
  await queues.postpone('a', one.head('a'), attempt('2'), { refused: true, asideUntil: time.now + 500 })
  t.match(queues.waiting('a'), { head: { messageId: '3' }, second: { messageId: '4' }, due: undefined })
  t.equal(queues.waiting('a').aside?.asideUntil, time.now + 500)
  await same('stepped aside after a try')
  await queues.setAside('a', one.head('a'), time.now + 900)
  await same('stepped aside')
  time.now += 600
  t.match(queues.waiting('a').due, { messageId: '2' })
  await queues.giveUp('a', [one.head('a')], 'no reason')
  t.match(queues.deadLetters('a'), [{ messageId: '4', reason: 'no reason' }])
  await same('given up')
  time.now += 600
  t.equal(await queues.giveUpAll('a', 'no reason'), 2)
  await same('all given up')
  t.equal(await queues.replay('a', '4'), 1)
  t.equal(await queues.replay('a', 'unknown'), 0)
  await same('one replayed')
  t.equal(await queues.replay('a'), 2)
  t.equal(await queues.replay('nowhere'), 0)
  await same('replayed')
  await queues.tidy(() => false)
  await same('tidied')
  await queues.drop('b')
  t.same(queues.names(), ['a'])
  await same('dropped')
  t.same(await one.drain('a'), ['4', '2', '3'], 'in the order in which they were given up')
  await queues.tidy(() => false)
  one.trim()
  t.same([...one.memory.keys('work/'), ...one.memory.keys('journal/')], [], 'nothing is left')
})

t.test('the journal keeps a message until its last item is gone, whatever ends it', async (t) => {
  const one = await openQueues()
  const { queues, memory } = one
  const messages = () => {
    one.trim()
    return memory.keys('journal/').length
  }
  await one.append('1', 'a', 'b', 'c', 'd')
  t.equal(memory.keys('journal/').length, 1, 'the groups of an event name one message')
  await queues.acknowledge('a', one.head('a'))
  t.equal(messages(), 1)
  await queues.drop('b')
  t.equal(messages(), 1)
  await queues.giveUp('c', [one.head('c')], 'no reason')
  t.equal(messages(), 1)
  const found = await one.reopen()
  found.trim()
  t.same(await found.drain('d'), ['1'], 'after a restart as well')
  await queues.acknowledge('d', one.head('d'))
  t.equal(messages(), 0)
  await queues.replay('c')
  await queues.postpone('c', one.head('c'), attempt('1'), { refused: false })
  t.same(
    await (await one.reopen()).drain('c'),
    ['1'],
    'a dead letter, and what is replayed, carries its payload',
  )
})

t.test('an item whose message is gone all the same is given up, and those behind it go on', async (t) => {
  const one = await openQueues()
  const { queues, memory } = one
  for (const id of ['1', '2']) await one.append(id, 'a')
  memory.entries.delete(memory.keys('journal/')[0] ?? '')
  t.equal(await queues.payload('a', one.head('a')), undefined)
  await queues.giveUp('a', [one.head('a')], 'its content is not stored any more')
  t.same(await one.drain('a'), ['2'])
  t.equal(await queues.replay('a'), 1)
  t.equal(await queues.payload('a', one.head('a')), undefined)
})

t.test('much is given up and replayed a megabyte at a time', async (t) => {
  const one = await openQueues()
  const { queues, memory } = one
  const large = Buffer.alloc(400_000)
  const ids = ['1', '2', '3', '4', '5', '6', '7']
  for (const id of ids) {
    const planned = one.plan(id, ['a'])
    const changes = planned.changes.map((change) =>
      'put' in change && change.put === 'journal/'
        ? { ...change, value: Buffer.concat([Buffer.from(change.value), large]) }
        : change,
    )
    await commitTogether(memory.store, [() => ({ ...planned, changes })])
  }
  const sizes: number[] = []
  memory.judge((changes) => {
    sizes.push(changes.reduce((sum, change) => sum + ('value' in change ? change.value.length : 0), 0))
    return 'stored'
  })
  await queues.giveUpAll('a', 'no reason')
  t.equal(await queues.replay('a'), ids.length)
  t.equal(sizes.length, 6)
  t.ok(Math.max(...sizes) < 1_300_000)
  t.match(queues.lengthOf('a'), { pending: ids.length, deadLetters: 0 })
  t.equal((await queues.payload('a', one.head('a')))?.length, large.length + 'payload of 1'.length)
})

t.test('a commit that is refused changes nothing, and can be made again', async (t) => {
  const one = await openQueues()
  const { queues, memory, time } = one
  for (const id of ['1', '2', '3']) await one.append(id, 'a')
  await queues.giveUp('a', [one.head('a')], 'no reason')
  const before = one.view('a')
  const steps: [string, () => Promise<unknown>][] = [
    ['replay', () => queues.replay('a')],
    ['acknowledge', () => queues.acknowledge('a', one.head('a'))],
    ['postpone', () => queues.postpone('a', one.head('a'), attempt('2'), { refused: true })],
    ['setAside', () => queues.setAside('a', one.head('a'), time.now + 1)],
    ['giveUp', () => queues.giveUp('a', [one.head('a')], 'no reason')],
    ['giveUpAll', () => queues.giveUpAll('a', 'no reason')],
    ['drop', () => queues.drop('a')],
  ]
  memory.judge(() => 'refused')
  for (const [what, step] of steps) {
    await t.rejects(step(), { message: 'disk full' }, what)
    t.same(one.view('a'), before, what)
  }
  t.equal(await one.append('4', 'a'), false)
  t.same(one.view('a'), before, 'append')
  memory.judge(() => 'stored')
  t.same((await one.reopen()).view('a'), before)
  for (const [what, step] of steps) await t.resolves(step(), what)
  t.equal(await one.append('4', 'a'), true)
  await queues.tidy(() => false)
  t.same(await (await one.reopen()).drain('a'), ['4'])
})

t.test('two replays at once send once', async (t) => {
  const one = await openQueues()
  await one.append('1', 'a')
  await one.queues.giveUpAll('a', 'no reason')
  t.same(await Promise.all([one.queues.replay('a'), one.queues.replay('a', '1')]), [1, 0])
  t.same(await one.drain('a'), ['1'])
})

t.test('a letter that expires while it is replayed is not lost, or not replayed', async (t) => {
  const one = await openQueues()
  const { queues, time } = one
  await one.append('1', 'a')
  await queues.giveUpAll('a', 'no reason')
  time.now += workLimits.deadLetterAgeMs
  for (const replayFirst of [true, false]) {
    const found = await one.reopen()
    const steps = [() => found.queues.replay('a'), () => found.queues.tidy(() => false)]
    if (!replayFirst) steps.reverse()
    const [replayed, tidied] = await Promise.all(steps.map((step) => step()))
    const count = replayFirst ? replayed : tidied
    t.same(await found.drain('a'), count === 1 ? ['1'] : [])
    t.equal(count, replayFirst ? 1 : 0)
  }
})

t.test('what is gone stays gone when its delivery ends', async (t) => {
  for (const end of ['postpone', 'setAside', 'giveUp', 'acknowledge'] as const) {
    for (const way of ['drop', 'giveUpAll'] as const) {
      const one = await openQueues()
      const { queues, time } = one
      await one.append('1', 'a')
      const item = one.head('a')
      const gone = way === 'drop' ? queues.drop('a') : queues.giveUpAll('a', 'the endpoint is gone')
      await Promise.all([
        gone,
        end === 'postpone' && queues.postpone('a', item, attempt('1'), { refused: false }),
        end === 'setAside' && queues.setAside('a', item, time.now),
        end === 'giveUp' && queues.giveUp('a', [item], 'too old'),
        end === 'acknowledge' && queues.acknowledge('a', item),
      ])
      t.equal(queues.lengthOf('a').pending, 0)
      const letters = way === 'drop' || end === 'acknowledge' ? 0 : 1
      t.equal(queues.deadLetters('a').length, letters, `${way}, then ${end}`)
      await queues.tidy(() => false)
      const found = await one.reopen()
      t.same(found.view('a'), one.view('a'), `${way}, then ${end}`)
      found.trim()
      t.same(found.memory.keys('journal/'), [])
    }
  }
})

t.test('an event that is accepted while its queue is dropped opens the queue again', async (t) => {
  const one = await openQueues()
  await one.append('1', 'a')
  const dropped = one.queues.drop('a')
  t.ok(await one.append('2', 'a'))
  await dropped
  t.same(await one.drain('a'), ['2'])
})

t.test('a queue keeps to its limit, oldest first, also when many come at once', async (t) => {
  const one = await openQueues({ perQueue: 10 })
  const { queues, metrics } = one
  const ids = Array.from({ length: 40 }, (_, index) => String(index))
  await Promise.all(ids.map((id) => one.append(id, 'a')))
  await queues.tidy(() => false)
  t.match(queues.lengthOf('a'), { pending: 10, dropped: 30 })
  t.match(await metrics.snapshot(), { hub_work_dropped_total: 30 })
  t.same((await one.reopen()).view('a'), one.view('a'))
  // The first item stays: an attempt may be under way.
  t.same(await one.drain('a'), ['0', ...ids.slice(-9)])
  one.trim()
  t.same(one.memory.keys('journal/'), [])
})

t.test('messages that stepped aside count as well', async (t) => {
  const one = await openQueues({ perQueue: 10 })
  const { queues, time } = one
  for (let index = 0; index < 30; index++) {
    await one.append(String(index), 'a')
    await queues.setAside('a', one.head('a'), time.now + hour)
  }
  await queues.tidy(() => false)
  t.match(queues.lengthOf('a'), { pending: 10, dropped: 20 })
  t.same(await one.drain('a'), ['20', '21', '22', '23', '24', '25', '26', '27', '28', '29'])
})

t.test('what could not be dropped is dropped with the next item', async (t) => {
  const one = await openQueues({ perQueue: 2 })
  const removes = (changes: readonly Change[]) => changes.every((change) => 'del' in change)
  one.memory.judge((changes) => (removes(changes) ? 'refused' : 'stored'))
  for (const id of ['1', '2', '3', '4']) await one.append(id, 'a')
  one.memory.judge(() => 'stored')
  await one.append('5', 'a')
  await one.queues.tidy(() => false)
  t.match(one.queues.lengthOf('a'), { pending: 2, dropped: 3 })
  t.same(await one.drain('a'), ['1', '5'])
})

t.test('tidying gives up what is too old, but not what is on its way', async (t) => {
  const one = await openQueues()
  const { queues, time } = one
  for (const id of ['1', '2', '3']) await one.append(id, 'a')
  await queues.setAside('a', one.head('a'), time.now + hour)
  time.now += workLimits.ageMs - 1
  await queues.tidy(() => false)
  t.equal(queues.lengthOf('a').pending, 3)
  await one.append('4', 'a')
  time.now += 1
  await queues.tidy((_name, { messageId }) => messageId === '2')
  t.match(
    queues.deadLetters('a').map(({ messageId, reason }) => [messageId, reason]),
    [
      ['1', 'it waited longer than items are kept'],
      ['3', 'it waited longer than items are kept'],
    ],
  )
  t.same((await one.reopen()).view('a'), one.view('a'))
  t.same(await one.drain('a'), ['2', '4'])
})

t.test('dead letters are kept within their number and age, and those lost are counted', async (t) => {
  const one = await openQueues({ perQueue: 5_000 })
  const { queues, time } = one
  const { deadLettersPerQueue, deadLetterAgeMs } = workLimits
  const ids = Array.from({ length: deadLettersPerQueue + 3 }, (_, index) => String(index))
  await Promise.all(ids.map((id) => one.append(id, 'a')))
  await queues.giveUpAll('a', 'no reason')
  await queues.tidy(() => false)
  t.match(queues.lengthOf('a'), { deadLetters: deadLettersPerQueue, dropped: 3 })
  t.equal(one.letter('a').messageId, '3')
  time.now += deadLetterAgeMs - 1
  await queues.tidy(() => false)
  t.equal(queues.lengthOf('a').deadLetters, deadLettersPerQueue)
  time.now += 1
  await queues.tidy(() => false)
  t.match(queues.lengthOf('a'), { deadLetters: 0, dropped: ids.length })
  const { hub_work_dropped_total: woken } = await one.metrics.snapshot()
  t.equal(woken, 0, 'no alert: they had waited for an operator')
  t.same(one.memory.keys('work-dead/'), [])
})

t.test('a closed queue keeps all it had to give up', async (t) => {
  const one = await openQueues({ perQueue: 5_000 })
  const ids = Array.from({ length: workLimits.deadLettersPerQueue + 3 }, (_, index) => String(index))
  await Promise.all(ids.map((id) => one.append(id, 'a')))
  t.equal(await one.queues.giveUpAll('a', 'retired'), ids.length)
  await one.queues.tidy(
    () => false,
    (name) => name === 'a',
  )
  t.same(
    one.queues.deadLetters('a').map(({ messageId }) => messageId),
    ids,
  )
  t.same((await one.reopen()).queues.deadLetters('a').length, ids.length)
})

t.test('a long queue that was given up in part only is given up by the next try', async (t) => {
  const one = await openQueues({ perQueue: 5_000 })
  const ids = Array.from({ length: 1_200 }, (_, index) => String(index))
  await Promise.all(ids.map((id) => one.append(id, 'a')))
  let commits = 0
  one.memory.judge(() => (++commits === 2 ? 'refused' : 'stored'))
  await t.rejects(one.queues.giveUpAll('a', 'retired'))
  const again = await one.reopen()
  t.match(again.queues.lengthOf('a'), { pending: 700, deadLetters: 500 })
  await again.queues.giveUpAll('a', 'retired')
  t.same(
    again.queues.deadLetters('a').map(({ messageId }) => messageId),
    ids,
  )
})

t.test('a clock that jumps ahead gives up nothing', async (t) => {
  const now = Date.parse('2026-06-01T12:00:00Z')
  const one = await openQueues({ now, steadyClock: () => now })
  await one.append('1', 'a')
  await one.append('2', 'a')
  await one.queues.giveUp('a', [one.head('a')], 'no reason')
  one.time.now += 40 * 24 * hour
  await one.queues.tidy(() => false)
  t.match(one.queues.lengthOf('a'), { pending: 1, deadLetters: 1 })
})

t.test('a clock that is set back does not mix old with new', async (t) => {
  const one = await openQueues()
  await one.append('1', 'a')
  await one.queues.giveUpAll('a', 'no reason')
  await one.append('2', 'a')
  const found = await one.reopen()
  found.time.now -= 10 * hour
  await found.append('3', 'a')
  const sequence = found.head('a').sequence
  t.same(await found.drain('a'), ['2', '3'])
  t.ok(found.letter('a').sequence < sequence)

  // Set the clock to the time that the sequence of the dead letter encodes. Message `4` must not get the same sequence.
  const again = await one.reopen()
  const letter = again.letter('a')
  again.time.now = Math.floor(letter.sequence / 4096)
  await again.queues.acknowledge('a', again.head('a'))
  const last = await again.reopen()
  await last.append('4', 'a')
  await last.queues.replay('a')
  t.same(await last.drain('a'), ['4', '1'], 'each with its own payload')
})

t.test('what stepped aside comes back when the clock is set back', async (t) => {
  const one = await openQueues()
  await one.append('1', 'a')
  await one.queues.setAside('a', one.head('a'), one.time.now + 600_000)
  one.time.now -= 24 * hour
  t.match(one.queues.waiting('a').due, { messageId: '1' })
})

t.test('of several aside the one is next whose time came first, after a restart as well', async (t) => {
  const one = await openQueues()
  for (const id of ['1', '2', '3']) await one.append(id, 'a')
  const now = one.time.now
  const due = (of: typeof one) => of.queues.waiting('a').due?.messageId
  await one.queues.setAside('a', one.head('a'), now + 200)
  await one.queues.setAside('a', one.head('a'), now + 100)
  await one.queues.setAside('a', one.head('a'), now + 300)
  one.time.now += 400
  t.same([due(one), due(await one.reopen())], ['2', '2'])
  const { due: second } = one.queues.waiting('a')
  const again = { refused: true, asideUntil: now + 350 }
  if (second) await one.queues.postpone('a', second, attempt('2'), again)
  t.same([due(one), due(await one.reopen())], ['1', '1'], 'the one tried in vain comes last')
})

t.test('dead letters of the same moment have the same order after a restart', async (t) => {
  const one = await openQueues()
  for (const id of ['1', '2', '3']) await one.append(id, 'a')
  const { head, second } = one.queues.waiting('a')
  if (second) await one.queues.giveUp('a', [second], 'no reason')
  if (head) await one.queues.giveUp('a', [head], 'no reason')
  one.time.now -= 1
  await one.queues.giveUp('a', [one.head('a')], 'no reason')
  for (const { queues } of [one, await one.reopen()]) {
    t.match(queues.deadLetters('a'), [{ messageId: '3' }, { messageId: '1' }, { messageId: '2' }])
  }
})
