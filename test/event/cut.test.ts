import t from 'tap'
import { cut } from '../../event/cut.ts'

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
