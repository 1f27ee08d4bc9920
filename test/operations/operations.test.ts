import t from 'tap'
import type { Operation } from '../../operations/operation.ts'
import { operationNames, operations } from '../../operations/operations.ts'

t.test('a sentence about what was done names fields of the answer', async (t) => {
  const sentences = operationNames.flatMap((name) => {
    const { hubctl: { done } = {}, result }: Operation = operations[name]
    return done === undefined ? [] : [{ name, done, fields: Object.keys(Object(result).properties) }]
  })
  t.ok(sentences.length > 5)
  for (const { name, done, fields } of sentences) {
    const named = [...done.matchAll(/\{(\w+)\}/g)].map(([, field = '']) => field)
    t.ok(named.length > 0 && named.every((field) => fields.includes(field)), `${name}: ${done}`)
  }
})
