import t from 'tap'
import { ConditionFailed } from '../../../store/store.ts'
import { messagesAt, openQueues } from '../open-queues.ts'

const unmarked = { check: 'mark', when: 'absent' } as const

async function start(perQueue = 1_000) {
  const one = await openQueues({ perQueue })
  for (const id of ['1', '2', '3', '4', '5']) await one.append(id, id === '3' || id === '5' ? 'a' : 'b')
  return one
}

t.test('what a queue begins with takes its places among what waits', async (t) => {
  const one = await start()
  await one.queues.begin('a', messagesAt(1, 2, 3, 4), unmarked)
  const { head, second } = one.queues.waiting('a')
  t.match([head, second], [{ messageId: '1', acceptedAt: 0 }, { messageId: '2' }])
  const found = await one.reopen()
  t.same(found.view('a'), one.view('a'), 'the same after a restart')
  await found.queues.begin('a', messagesAt(1, 2, 3, 4), unmarked)
  t.same(found.view('a'), one.view('a'), 'and when it is done once more')
  t.same(await found.drain('a'), ['1', '2', '3', '4', '5'])
})

t.test('the journal keeps what it is sure to have, the others are copied', async (t) => {
  const one = await start()
  one.journal.raiseFloor(2)
  await one.queues.begin('a', messagesAt(1, 2, 3, 4), unmarked)
  t.same(one.memory.keys('work/a/').length, 5)
  await one.queues.drop('b')
  for (const position of [1, 2, 3, 4, 5]) t.equal(one.journal.neededByQueues.has(position), position > 1)
  one.trim()
  t.same(await one.drain('a'), ['1', '2', '3', '4', '5'])
  for (const position of [1, 2, 3, 4, 5])
    t.notOk(one.journal.neededByQueues.has(position), 'until it is sent')
})

t.test('the newest, as many as there is room for', async (t) => {
  const one = await start(3)
  await one.queues.begin('a', messagesAt(1, 2, 3, 4), unmarked)
  t.same(await one.drain('a'), ['3', '4', '5'])
})

t.test('nothing is put there once the mark has gone', async (t) => {
  const one = await start()
  const before = one.view('a')
  const marked = { check: 'mark', when: 'present' } as const
  await t.rejects(one.queues.begin('a', messagesAt(1, 2, 3, 4), marked), ConditionFailed)
  t.same(one.view('a'), before)
  t.same((await one.reopen()).view('a'), before)
})

t.test('what is not kept any more is left out', async (t) => {
  const one = await start()
  await one.queues.drop('b')
  one.trim()
  await one.queues.begin('a', messagesAt(1, 2, 3, 4), unmarked)
  t.same(await one.drain('a'), ['3', '5'])
})
