import t from 'tap'
import { EventRefused } from '../../client/node.ts'

t.test('a refusal names the outcome, and each mistake with its place', async (t) => {
  const errors = [
    { path: '.length', message: 'must be > 0', errorCode: 'exclusiveMinimum.openapi.validation' },
    { path: '.title', message: 'must be string', errorCode: 'type.openapi.validation' },
  ]
  const refusal = new EventRefused('invalid', errors)
  t.match(refusal, { name: 'EventRefused', outcome: 'invalid', errors })
  t.equal(refusal.message, 'invalid: .length must be > 0; .title must be string')
})
