import t from 'tap'
import { beyondLimit, emptyQueue, lengthOf, takeFrom } from '../../../delivery/queue/queue.ts'
import type { WorkItem } from '../../../delivery/queue/work-item.ts'

const item = (sequence: number): WorkItem => ({
  sequence,
  messageId: String(sequence),
  details: {},
  position: sequence,
  enqueuedAt: sequence,
  seen: 0,
  tries: 0,
  refusals: 0,
  attempts: [],
})
const items = (...sequences: number[]) => sequences.map(item)
const sequences = (list: readonly WorkItem[]) => list.map(({ sequence }) => sequence)

t.test('what exceeds the limit is the oldest, but not the first of the inOrder', async (t) => {
  const table: [inOrder: number[], aside: number[], limit: number, beyond: number[]][] = [
    [[], [], 2, []],
    [[1, 2], [], 2, []],
    [[1, 2, 3], [], 2, [2]],
    [[1, 2, 3, 4, 5], [], 2, [2, 3, 4]],
    [[4, 5], [3, 1, 2], 2, [1, 2, 3]],
    [[2, 5, 6], [3, 4], 2, [3, 4, 5]],
    [[], [3, 1, 2], 2, [1]],
    [[1], [], 0, []],
  ]
  for (const [inOrder, aside, limit, beyond] of table) {
    const queue = { ...emptyQueue(), inOrder: items(...inOrder), aside: items(...aside) }
    t.same(sequences(beyondLimit(queue, limit)), beyond, JSON.stringify({ inOrder, aside, limit }))
  }
})

t.test('items are taken out of the inOrder and from aside', async (t) => {
  const table: [taken: number[], inOrder: number[], aside: number[]][] = [
    [[1], [2, 3], [4, 5]],
    [[3], [1, 2], [4, 5]],
    [[5], [1, 2, 3], [4]],
    [[9], [1, 2, 3], [4, 5]],
    [[], [1, 2, 3], [4, 5]],
    [[2, 4, 9], [1, 3], [5]],
  ]
  for (const [taken, inOrder, aside] of table) {
    const queue = { ...emptyQueue(), inOrder: items(1, 2, 3), aside: items(4, 5) }
    t.same(
      sequences(takeFrom(queue, new Set(taken))),
      taken.filter((sequence) => sequence !== 9),
    )
    t.same([sequences(queue.inOrder), sequences(queue.aside)], [inOrder, aside])
  }
})

t.test('a long queue is told about like a short one', async (t) => {
  const aside = Array.from({ length: 150_000 }, (_, index) => item(index + 1))
  t.match(lengthOf({ ...emptyQueue(), aside }), { pending: 150_000, oldest: '1970-01-01T00:00:00.001Z' })
  t.match(lengthOf(emptyQueue()), { pending: 0, oldest: null })
})
