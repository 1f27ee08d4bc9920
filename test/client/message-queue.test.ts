import t from 'tap'
import { createMessageQueue } from '../../client/message-queue.ts'

t.test('what is taken in time comes in order, all of it', async (t) => {
  const queue = createMessageQueue<number>({ limit: 10 })
  for (const value of [1, 2, 3]) queue.push('a', value, 1)
  t.strictSame(await taken(queue, 3), [1, 2, 3])
  const later = queue.next()
  queue.push('a', 4, 1)
  t.strictSame(await later, { value: 4, dropped: 0 })
})

t.test('beyond the limit the newest of each key stays, and the number of the others is told', async (t) => {
  const queue = createMessageQueue<string>({ limit: 3 })
  for (const value of ['a1', 'b1', 'a2', 'a3', 'c1', 'a4']) queue.push(value.charAt(0), value, 1)
  t.strictSame(await queue.next(), { value: 'a1', dropped: 2 })
  t.strictSame(await taken(queue, 3), ['b1', 'c1', 'a4'])
  queue.push('a', 'a5', 1)
  t.strictSame(await queue.next(), { value: 'a5', dropped: 0 })
})

t.test('keys without end fill nothing', async (t) => {
  const queue = createMessageQueue<number>({ limit: 3, most: 5 })
  for (let value = 0; value < 100; value++) queue.push(`key ${value}`, value, 1)
  t.strictSame(await queue.next(), { value: 95, dropped: 95 })
  t.strictSame(await taken(queue, 4), [96, 97, 98, 99])
})

t.test('what waits is bounded by its bytes, too', async (t) => {
  const queue = createMessageQueue<number>({ mostBytes: 100 })
  for (const value of [0, 1, 2, 3]) queue.push(`key ${value}`, value, 40)
  t.strictSame(await queue.next(), { value: 2, dropped: 2 })
  queue.push('large', 4, 1_000)
  t.strictSame(await queue.next(), { value: 4, dropped: 1 }, 'the newest stays, however large')
  queue.push('key 5', 5, 100)
  t.strictSame(await queue.next(), { value: 5, dropped: 0 }, 'and what was taken does not count any more')
})

t.test('after the end, what waits is still taken', async (t) => {
  const queue = createMessageQueue<number>()
  queue.push('a', 1, 1)
  queue.end(new Error('over'))
  queue.push('a', 2, 1)
  t.strictSame(await taken(queue, 1), [1])
  await t.rejects(queue.next(), { message: 'over' })
  const ended = createMessageQueue<number>()
  const waiting = [ended.next(), ended.next()]
  ended.end()
  t.strictSame(await Promise.all(waiting), [undefined, undefined], 'all who wait are told')
})

async function taken<T>(queue: ReturnType<typeof createMessageQueue<T>>, count: number): Promise<unknown[]> {
  const values: unknown[] = []
  for (let nth = 0; nth < count; nth++) values.push((await queue.next())?.value)
  return values
}
