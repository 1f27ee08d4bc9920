import t from 'tap'
import { createAttempts, keptAttempts } from '../../delivery/attempts.ts'
import { createMemoryStore } from './memory-store.ts'
import { attempt } from './open-queues.ts'

const ids = (list: readonly { messageId: string }[]) => list.map(({ messageId }) => messageId)

t.test('the last attempts of a queue are kept, newest first, also after a restart', async (t) => {
  const memory = createMemoryStore()
  const attempts = createAttempts(memory.store)
  const all = Array.from({ length: keptAttempts + 20 }, (_, index) => String(index))
  // All attempts have the same time, so the time does not give their order.
  for (const id of all) await memory.store.commit(await attempts.add('a', attempt(id)))
  await memory.store.commit(await attempts.add('b', attempt('other')))
  const expected = all.slice(-keptAttempts).reverse()
  for (const one of [attempts, createAttempts(memory.crashed().store)]) {
    t.same(ids(await one.list('a')), expected)
    t.same(ids(await one.list('b')), ['other'])
    t.same(await one.list('c'), [])
  }
  t.equal(memory.keys('attempt/a/').length, keptAttempts)

  await memory.store.commit(await attempts.drop('a'))
  t.same(memory.keys('attempt/a/'), [])
  t.same(await attempts.list('a'), [])
  t.same(ids(await attempts.list('b')), ['other'])
})

t.test('a clock that is set back does not change the order', async (t) => {
  const memory = createMemoryStore()
  const attempts = createAttempts(memory.store)
  for (const [id, time] of [
    ['1', '2026-06-01T12:00:00.000Z'],
    ['2', '2026-05-01T12:00:00.000Z'],
    ['3', '2026-07-01T12:00:00.000Z'],
  ] as const) {
    await memory.store.commit(await attempts.add('a', { ...attempt(id), time }))
  }
  t.same(ids(await createAttempts(memory.store).list('a')), ['3', '2', '1'])
})

t.test('a stretch reaches from the first event that was passed over to the last, in any order', async (t) => {
  const memory = createMemoryStore()
  const attempts = createAttempts(memory.store)
  const passed = (...seconds: number[]) =>
    attempts.pass(
      'a',
      seconds.map((at) => ({ livestreamId: 'x', messageId: `${at}`, at: at * 1000 })),
      '2026-06-01T12:00:00.000Z',
    )
  await memory.store.commit(await passed(5, 9, 3))
  await memory.store.commit(await passed(2, 7))
  const iso = (seconds: number) => new Date(seconds * 1000).toISOString()
  t.match(await attempts.list('a'), [{ stale: { count: 5, first: iso(2), last: iso(9) } }])
})

t.test('a read that fails is made again', async (t) => {
  const memory = createMemoryStore()
  let fails = true
  const attempts = createAttempts({
    ...memory.store,
    async *range(...at) {
      if (fails) throw new Error('read error')
      yield* memory.store.range(...at)
    },
  })
  await t.rejects(attempts.list('a'), { message: 'read error' })
  await t.rejects(attempts.add('a', attempt('1')), { message: 'read error' })
  fails = false
  t.equal((await attempts.add('a', attempt('1'))).length, 1)
})
