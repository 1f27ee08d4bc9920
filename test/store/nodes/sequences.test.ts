import t from 'tap'
import { maxNodes } from '../../../store/nodes/nodes.ts'
import { createSequences } from '../../../store/nodes/sequences.ts'

const start = Date.parse('2026-03-01T12:00:00Z')

t.test('sequences rise, also when the clock stands still or is set back', async (t) => {
  let now = start
  const { next } = createSequences(() => now, { slot: () => 0 })
  let last = 0
  for (let index = 0; index < 1000; index++) {
    const sequence = next()
    t.ok(sequence > last && Number.isSafeInteger(sequence))
    last = sequence
    if (index === 500) now -= 5_000
  }
})

t.test('no two nodes make the same, and they sort by time', async (t) => {
  let now = start
  const nodes = Array.from({ length: maxNodes }, (_, slot) => {
    return createSequences(() => now, { slot: () => slot }).next
  })
  const made = new Set<number>()
  let before = 0
  for (; now < start + 20; now++) {
    const sequences = nodes.map((next) => next())
    for (const sequence of sequences) made.add(sequence)
    t.ok(Math.min(...sequences) > before)
    before = Math.max(...sequences)
  }
  t.equal(made.size, 20 * maxNodes)
})

t.test('a node that got another slot goes on above what it made', async (t) => {
  let slot = 5
  const { next } = createSequences(() => start, { slot: () => slot })
  const before = next()
  slot = 0
  t.ok(next() > before)
})

t.test('what follows upon something sorts behind it, although the clock of its node is ahead', async (t) => {
  const ahead = createSequences(() => start + 5_000, { slot: () => 1 })
  const behind = createSequences(() => start, { slot: () => 0 })
  const first = ahead.next()
  behind.heard(first)
  const second = behind.next()
  t.ok(second > first)
  behind.heard(1)
  t.ok(behind.next() > second, 'what is old changes nothing')
})

t.test('they are exact for more than a decade', async (t) => {
  const { next } = createSequences(() => Date.parse('2039-01-01T00:00:00Z'), { slot: () => maxNodes - 1 })
  t.ok(Number.isSafeInteger(next()))
})
