import t from 'tap'
import { isRecord } from '../../../event/json.ts'
import { readInParts } from '../../../validator/feed/parts.ts'

/* A document that is read in parts is what JSON.parse makes of it, and refused where JSON.parse refuses it. */

const documents = [
  '{"items":[{"id":"a","of":{"list":[1,2,{"items":[3]}]}},{"id":"b"}],"count":2}',
  '{ "first" : "items", "items" : [ ] , "more" : { "items" : [ 1 ] } }',
  '{"items":[1],"items":[2,"]",3],"\\u0069tems":[4,"\\"],["]}',
  '{"items":[1,2],"items":5}',
  '{"items":{"items":[1]}}',
  '["items",[1,2],{"items":[1]}]',
  '{"ä":"ö","items":["ü\\\\",[[]],null,-1.5e3,true]}',
  '\n{"items":\t[\r1 , 2\n]}\n',
  '{"items":[1,]}',
  '{"items":[,1]}',
  '{"items":[1,,2]}',
  '{"items":[1}',
  '{"items":[1]}]',
  '{"items":[1]}{"items":[2]}',
  '{"items" [1]}',
  '{"a":"items":[1]}',
  '{"items":["a]}',
  '"items"',
  '',
]

t.test('documents', async (t) => {
  for (const text of documents) t.strictSame(inParts(text), atOnce(text), text)
})

t.test('documents with a few faults', async (t) => {
  const random = startRandom(1)
  const pieces = [
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '\\',
    ' ',
    '1',
    'ä',
    '"items"',
    '"items":[',
    '[1,2]',
    '{"a":1}',
  ]
  const pick = <One>(list: readonly One[]): One | undefined => list[random(list.length)]
  for (let round = 0; round < 20_000; round++) {
    let text = pick(documents) ?? ''
    for (let fault = random(3); fault >= 0; fault--) {
      const [at, removed] = [random(text.length + 1), random(3)]
      text = text.slice(0, at) + (random(2) ? (pick(pieces) ?? '') : '') + text.slice(at + removed)
    }
    const [parts, whole] = [inParts(text), atOnce(text)]
    if (JSON.stringify(parts) !== JSON.stringify(whole)) t.strictSame(parts, whole, text)
  }
  t.pass('as JSON.parse reads them')
})

t.test('only one item is in memory', async (t) => {
  const item = JSON.stringify({ text: 'a'.repeat(100) })
  const bytes = Buffer.from(`{"items":[${Array(1_000).fill(item).join()}]}`)
  const longest = { text: 0 }
  const { parse } = JSON
  t.teardown(() => {
    JSON.parse = parse
  })
  JSON.parse = (text, reviver) => {
    longest.text = Math.max(longest.text, text.length)
    return parse(text, reviver)
  }
  readInParts(bytes, 'items', () => () => {})
  t.equal(longest.text, item.length)
})

/** The items, and the rest of a document. Null: it is no JSON. */
function inParts(text: string) {
  let items: unknown[] | undefined
  try {
    const { rest } = readInParts(Buffer.from(text), 'items', () => {
      const list: unknown[] = []
      items = list
      return (item) => list.push(item)
    })
    const hasList = isRecord(rest) && Array.isArray(rest.items)
    return { items: hasList ? items : undefined, rest }
  } catch {
    return null
  }
}

function atOnce(text: string) {
  try {
    const document: unknown = JSON.parse(text)
    if (!isRecord(document) || !Array.isArray(document.items)) return { items: undefined, rest: document }
    const { items } = document
    return { items, rest: { ...document, items: [] } }
  } catch {
    return null
  }
}

/** Whole numbers below a bound, the same ones at each run. */
function startRandom(seed: number): (bound: number) => number {
  let state = seed
  return (bound) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * bound)
  }
}
