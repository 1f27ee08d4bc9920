import t from 'tap'
import { createEventIds } from '../../event/id.ts'

t.test('ids are numeric strings', async (t) => {
  t.match(createEventIds()(), /^[1-9]\d+$/)
})

t.test('ids of one process increase strictly', async (t) => {
  const nextId = createEventIds()
  const ids = Array.from({ length: 200_000 }, () => BigInt(nextId()))
  t.ok(ids.every((id, index) => index === 0 || id > (ids[index - 1] ?? id)))
})

t.test('ids increase when the clock stands still for more than 65,536 of them', async (t) => {
  const nextId = createEventIds(() => 1_769_857_200_000)
  const ids = Array.from({ length: 150_000 }, () => BigInt(nextId()))
  t.ok(ids.every((id, index) => index === 0 || id > (ids[index - 1] ?? id)))
})

t.test('ids increase when the clock steps back', async (t) => {
  const times = [1000, 2000, 500, 500, 1999, 2001]
  const nextId = createEventIds(() => times.shift() ?? 0)
  const ids = Array.from({ length: 8 }, () => BigInt(nextId()))
  t.strictSame(
    ids,
    ids.toSorted((a, b) => (a < b ? -1 : 1)),
  )
  t.equal(new Set(ids).size, 8)
})

t.test('ids of different nodes are ordered by time and differ within a millisecond', async (t) => {
  let now = 1_769_857_200_000
  const nodes = Array.from({ length: 50 }, () => createEventIds(() => now))
  const first = nodes.map((nextId) => nextId())
  now++
  const second = nodes.map((nextId) => nextId())
  t.equal(new Set([...first, ...second]).size, 100)
  t.ok(second.every((later) => first.every((earlier) => BigInt(later) > BigInt(earlier))))
})
