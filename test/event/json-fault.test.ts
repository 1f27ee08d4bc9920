import fc from 'fast-check'
import t from 'tap'
import { jsonFault } from '../../event/json-fault.ts'

t.test('a mistake is named by line and column, without a word of the text', async (t) => {
  const wrong: [text: string, fault: string][] = [
    ['', 'line 1, column 1: the text ends before its JSON does'],
    ['{"a":1', 'line 1, column 7: the text ends before its JSON does'],
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
  ]
  for (const [text, fault] of wrong) t.equal(jsonFault(text), fault, text)
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
      t.equal(jsonFault(text) === undefined, parses(text), text)
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
