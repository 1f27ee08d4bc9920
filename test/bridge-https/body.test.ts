import t from 'tap'
import { compileBody } from '../../bridge-https/body.ts'
import { Type } from '../../event/type.ts'

t.test('half a character is refused in any text or key of a body, with its path', async (t) => {
  const check = compileBody([Type.Object({ email: Type.String() }, { additionalProperties: true })])
  t.strictSame(check(Buffer.from('{"email":"\\ud83c\\udfb5"}')), { value: { email: '🎵' } })
  for (const [text, path] of [
    ['{"email":"kim\\ud83c"}', '.body.email'],
    ['{"email":"kim","a":{"b":["\\udfb5"]}}', '.body.a.b.0'],
    ['{"email":"kim","\\udfb5":1}', '.body.\\u{dfb5}'],
  ] as const) {
    const errors = [{ path, errorCode: 'payload.json', message: /half a character/ }]
    t.match(check(Buffer.from(text)), { errors }, text)
  }
})

t.test('a field that is nearly one of the schema is refused, any other unknown one is ignored', async (t) => {
  const check = compileBody([
    Type.Object({
      url: Type.String(),
      maxAge: Type.Optional(Type.Number()),
      kinds: Type.Optional(Type.String()),
    }),
  ])
  t.strictSame(check(Buffer.from('{"url":"a","comment":"b"}')), { value: { url: 'a', comment: 'b' } })
  for (const [name, expected] of Object.entries({
    maxage: 'maxAge',
    max_age: 'maxAge',
    'MAX-AGE': 'maxAge',
    kind: 'kinds',
  })) {
    const errors = [
      {
        path: `.body.${name}`,
        errorCode: 'additionalProperties.openapi.validation',
        message: `expected ${expected}`,
      },
    ]
    t.match(check(Buffer.from(JSON.stringify({ url: 'a', [name]: 1 }))), { errors }, name)
  }
})
