import fc from 'fast-check'
import t from 'tap'
import { readJson } from '../../config/json-file.ts'

const read = (text: string) => readJson(Buffer.from(text))

t.test('a mistake is named by line and column, without a word of the file', async (t) => {
  const wrong: [text: string, problem: string][] = [
    ['', 'line 1, column 1: the file ends before its JSON does'],
    ['{"a":1', 'line 1, column 7: the file ends before its JSON does'],
    ['{"smtp":{"password":"geheim"x}}', 'line 1, column 29: this is not JSON'],
    ['{\n  "password": geheim\n}', 'line 2, column 15: this is not JSON'],
    ["{\n  'password': 1\n}", 'line 2, column 3: this is not JSON'],
    ['{\r\n  "ä": "😀" "geheim"\r\n}', 'line 2, column 12: this is not JSON'],
    ['{"a":"geheim\n"}', 'line 1, column 6: this is not JSON'],
    ['{"a":1,}', 'line 1, column 8: this is not JSON'],
    ['{"a":[1,]}', 'line 1, column 9: this is not JSON'],
    ['{"a" 1}', 'line 1, column 6: this is not JSON'],
    ['{"a":01}', 'line 1, column 7: this is not JSON'],
    ['{"a":1} geheim', 'line 1, column 9: this is not JSON'],
    ['{"a":1]', 'line 1, column 7: this is not JSON'],
    ['// geheim\n{}', 'line 1, column 1: this is not JSON'],
    ['"geheim"', 'expected an object'],
    ['[]', 'expected an object'],
    ['\uFEFF{}', 'it starts with a byte order mark, expected JSON'],
  ]
  for (const [text, problem] of wrong) t.strictSame(read(text), { problems: [problem] }, text)
  t.match(readJson(Buffer.from([0x7b, 0xff])), { problems: [/not UTF-8/] })
})

t.test('JSON that could be understood differently is refused by its place, without its values', async (t) => {
  t.match(read('{"a":{"b":1,"b":2}}'), { problems: [/^at \.a\.b: .*occurs twice$/] })
  const { problems = [] } = { problems: undefined, ...read('{"a":123456789012345678901}') }
  t.match(problems, [/^at \.a: .*out of range/])
  t.notMatch(problems.join(), /1234/)
})

t.test('the place of a mistake is found exactly where JSON.parse finds one', async (t) => {
  const mutated = fc
    .tuple(fc.json(), fc.nat(), fc.nat({ max: 3 }), fc.constantFrom('', ',', '"', '}', ']', 'x', ':', '0'))
    .map(([text, at, removed, added]) => {
      const place = at % (text.length + 1)
      return text.slice(0, place) + added + text.slice(place + removed)
    })
  fc.assert(
    fc.property(mutated, (text) => {
      const read = readJson(Buffer.from(`{"a":${text}}`))
      const isSyntax = 'problems' in read && read.problems.some((problem) => problem.startsWith('line '))
      t.equal(isSyntax, !parses(`{"a":${text}}`), text)
    }),
    { numRuns: 500 },
  )
})

function parses(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
