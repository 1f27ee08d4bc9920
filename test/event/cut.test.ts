import t from 'tap'
import { cut } from '../../event/cut.ts'
import { collectGarbage } from '../collect-garbage.ts'

t.test('a text is cut before a character that would not fit whole', async (t) => {
  const cases: [text: string, limit: number, cut: string][] = [
    ['', 0, ''],
    ['abc', 3, 'abc'],
    ['abc', 2, 'ab'],
    ['a🎵b', 1, 'a'],
    ['a🎵b', 2, 'a'],
    ['a🎵b', 3, 'a🎵'],
    ['🎵', 1, ''],
    ['🎵🎵', 3, '🎵'],
  ]
  for (const [text, limit, expected] of cases) t.equal(cut(text, limit), expected, `${text} ${limit}`)
})

t.test('half of a character that stands alone stays as it is', async (t) => {
  t.equal(cut('\ud83cbc', 2), '\ud83cb')
})

t.test('what is left of a long text keeps nothing of the rest in memory', async (t) => {
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  const kept = Array.from({ length: 100 }, (_, n) => cut(`${n} ${'x'.repeat(400_000)}`, 500))
  collectGarbage()
  t.ok(process.memoryUsage().heapUsed - before < 10 * 1024 * 1024)
  t.ok(kept.every(({ length }) => length === 500))
})
