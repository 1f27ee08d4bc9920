import { Ajv } from 'ajv'
import t from 'tap'
import { isOwnError, schemaError } from '../../event/schema-error.ts'

const ajv = new Ajv({ allErrors: true, verbose: true, strict: true, formats: { email: /@/ } })
const validate = ajv.compile({
  type: 'object',
  title: 'Sample',
  required: ['name'],
  additionalProperties: false,
  properties: {
    name: { type: 'string', minLength: 3, maxLength: 5 },
    kind: { type: 'string', const: 'PUBSUB' },
    role: { type: 'string', enum: ['a', 'b'] },
    contact: { type: 'string', format: 'email' },
    password: { type: 'string', minLength: 10 },
    'a/b~c': { type: 'number' },
  },
})

t.test('an error names place, value and expectation', async (t) => {
  const table: [value: object, path: string, message: string, keyword: string][] = [
    [{}, '.name', 'A required field is missing: expected "name" in Sample', 'required'],
    [
      { name: 'abc', x: 1 },
      '.x',
      'The field is not known here: "x" is no field of Sample',
      'additionalProperties',
    ],
    [{ name: 7 }, '.name', 'The value has the wrong type: got 7, expected string', 'type'],
    [{ name: 'ab' }, '.name', 'The text is too short: got "ab", expected at least 3 characters', 'minLength'],
    [
      { name: 'abcdef' },
      '.name',
      'The text is too long: got "abcdef", expected at most 5 characters',
      'maxLength',
    ],
    [
      { name: 'abc', kind: 'X' },
      '.kind',
      'The value is not the one allowed: got "X", expected "PUBSUB"',
      'const',
    ],
    [
      { name: 'abc', role: 'c' },
      '.role',
      'The value is not one of those allowed: got "c", expected one of a, b',
      'enum',
    ],
    [
      { name: 'abc', contact: 'nobody' },
      '.contact',
      'The value has the wrong format: got "nobody", expected an e-mail address such as studio@radio.example',
      'format',
    ],
    [
      { name: 'abc', 'a/b~c': 'x' },
      '.a/b~c',
      'The value has the wrong type: got "x", expected number',
      'type',
    ],
  ]
  for (const [value, path, message, keyword] of table) {
    t.same(errorsOf(value), [{ path, message, errorCode: `${keyword}.openapi.validation` }], path)
  }
})

t.test('a value of the wrong type is one error', async (t) => {
  t.match(errorsOf({ name: 'abc', kind: 7 }), [{ errorCode: 'type.openapi.validation' }])
  t.equal(errorsOf({ name: 'abc', kind: 7, role: null }).length, 2)
})

t.test('a secret is not repeated', async (t) => {
  const [error] = errorsOf({ name: 'abc', password: 'short' })
  t.match(error, { path: '.password', message: 'The text is too short: expected at least 10 characters' })
})

t.test('a path starts where the value stands', async (t) => {
  validate({ name: 7 })
  const [error] = validate.errors ?? []
  t.equal(error && schemaError(error, { at: ['services', 3] }).path, '.services.3.name')
})

function errorsOf(value: object) {
  validate(value)
  const isSecret = (path: string) => path === '.password'
  return (validate.errors ?? []).filter(isOwnError).map((error) => schemaError(error, { isSecret }))
}
