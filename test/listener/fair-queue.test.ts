import t from 'tap'
import { createFairQueue } from '../../listener/fair-queue.ts'

t.test('askers are served alternately, and each asker has its own in order', async (t) => {
  const queue = createFairQueue<string>()
  for (const item of ['a1', 'a2', 'a3', 'b1', 'c1', 'b2']) queue.add(item.slice(0, 1), item)
  t.equal(queue.size(), 6)
  t.strictSame([queue.next(), queue.next()], ['a1', 'b1'])
  queue.add('d', 'd1')
  t.strictSame(Array.from({ length: 5 }, queue.next), ['c1', 'a2', 'b2', 'd1', 'a3'])
  t.equal(queue.next(), undefined)
  t.equal(queue.size(), 0)
})

t.test('the last of the busiest asker can be taken out', async (t) => {
  const queue = createFairQueue<string>()
  t.equal(queue.busiest(), undefined)
  for (const item of ['a1', 'b1', 'b2']) queue.add(item.slice(0, 1), item)
  t.equal(queue.busiest(), 'b')
  t.equal(queue.takeLast('b'), 'b2')
  t.equal(queue.takeLast('b'), 'b1')
  t.equal(queue.takeLast('b'), undefined)
  t.equal(queue.sizeOf('b'), 0)
  t.strictSame([queue.size(), queue.next(), queue.next()], [1, 'a1', undefined])
})
