import t from 'tap'
import { inTurns, jsonInTurns } from '../../telemetry/turns.ts'
import { turnsBeside } from '../turns-beside.ts'

t.test('data becomes the JSON that JSON.stringify writes', async (t) => {
  const many = Array.from({ length: 1_001 }, (_, n) => (n % 3 === 0 ? { n, text: 'ä"\ud800' } : undefined))
  for (const value of [
    null,
    1,
    'x',
    [],
    {},
    [undefined],
    many,
    { result: many },
    { result: { items: many, next: null, none: undefined, deeper: { list: many, toJSON: 'a text' } } },
    { at: new Date(0), nested: [[many]] },
    Object.assign(Object.create(null), { a: 1 }),
  ])
    t.equal(await jsonInTurns(value), JSON.stringify(value))
})

t.test('a long list leaves turns of the event loop to others', async (t) => {
  const row = { text: 'x'.repeat(1_000), more: Array.from({ length: 50 }, (_, n) => n) }
  t.ok((await turnsBeside(() => jsonInTurns({ result: Array(20_000).fill(row) }))) > 4)
  t.ok((await turnsBeside(() => inTurns(Array(20_000).fill(row), JSON.stringify))) > 4)
  const byPromise = async (one: unknown) => JSON.stringify(one)
  t.ok((await turnsBeside(() => inTurns(Array(20_000).fill(row), byPromise))) > 4)
  t.same(await inTurns([row], byPromise), [JSON.stringify(row)])
})
