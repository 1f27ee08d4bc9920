import fc from 'fast-check'
import t from 'tap'
import { halfCharacters, parseJson } from '../../event/json.ts'
import { words } from '../words.ts'

t.test('an object is read', async (t) => {
  const texts = [
    '{}',
    ' {\r\n\t"a" : [ 1 , -2.5e-3, "x", true, false, null, {"b":{}} ] } ',
    '{"a":{"a":1},"b":{"a":1}}',
    '{"":1,"constructor":2,"toString":3}',
    '{"a":"a","b":"{\\"a\\":1,\\"a\\":2}","c":"\\\\"}',
    '{"a":9007199254740991,"b":-9007199254740991,"c":0.1,"d":1E2}',
    '{"a":"\\u0000\\ud83c\\udfb5 1e999 \\" __proto__"}',
    `{"a":${'['.repeat(63)}${']'.repeat(63)}}`,
  ]
  for (const text of texts)
    t.strictSame(parseJson(Buffer.from(text)), { value: JSON.parse(text) }, text.slice(0, 60))
})

t.test('what is refused, and where', async (t) => {
  const nested = (depth: number) => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`
  const cases: [text: string, ...places: [path: string, message: RegExp][]][] = [
    ['', ['.', /text ends before its JSON/]],
    ['{', ['.', /JSON/]],
    ['{"a":1}x', ['.', /JSON/]],
    ['{"a":"\\x"}', ['.', /JSON/]],
    ['{"a\\x":1}', ['.', /JSON/]],
    ['{"a', ['.', /JSON/]],
    ['[{"a":1}]', ['.', /array of 1, expected an object/]],
    ['null', ['.', /null, expected an object/]],
    ['"x"', ['.', /a string, expected an object/]],
    ['\uFEFF{}', ['.', /byte order mark/]],
    ['{"a":1,"a":1}', ['.a', /"a" occurs twice/]],
    ['{"a":1,"\\u0061":1}', ['.a', /"a" occurs twice/]],
    ['{"a":1,"b":2,"a":3,"a":4,"b":5}', ['.a', /"a"/], ['.b', /"b"/]],
    ['{"s":[{},{"n":1 , "n" :1}]}', ['.s.1.n', /"n" occurs twice/]],
    ['{"toString":1,"toString":1}', ['.toString', /twice/]],
    ['{"":1,"":1}', ['.', /"" occurs twice/]],
    ['{"a":1e999}', ['.a', /out of range/]],
    ['{"a":-1e400}', ['.a', /out of range/]],
    ['{"a":[0,9007199254740992]}', ['.a.1', /out of range/]],
    ['{"a":{"b":-9007199254740992}}', ['.a.b', /out of range/]],
    ['{"a":1e300}', ['.a', /out of range/]],
    ['{"__proto__":null}', ['.__proto__', /__proto__/]],
    ['{"a":[{"\\u005f_proto__":{}}]}', ['.a.0.__proto__', /__proto__/]],
    [`{"a":[1e999,${'1,'.repeat(9_996)}1]}`, ['.a.0', /out of range/]],
    [`{"a":[${'1,'.repeat(9_999)}1]}`, ['.', /more than 10000 values/]],
    [`{"a":[${'{},'.repeat(9_998)}{"b":""}]}`, ['.', /more than 10000 values/]],
    // Not JSON. Here, too, the parser stops after 10,000 values.
    [
      `{${Array.from({ length: 10_001 }, (_, index) => `"${index}":`).join('')}`,
      ['.', /more than 10000 values/],
    ],
    [`{${'"a":null,'.repeat(9_998)}"b":true}`, ['.a', /"a" occurs twice/]],
    [nested(65), [`.a${'.0'.repeat(63)}`, /deeper than 64/]],
    ['{"a":"\\ud83c"}', ['.a', /half a character/]],
    ['{"a":"\\uDF39"}', ['.a', /half a character/]],
    ['{"a":"\\\\ud83c\\udf39"}', ['.a', /half a character/]],
    ['{"\\ud83c":{"\\ud83c":"\\ud83c"}}', ['.\\u{d83c}', /half/], ['.\\u{d83c}.\\u{d83c}', /half/]],
    ['{"a":[0,["\\ud83c x"]],"b":"x\\udf39\\ud83c"}', ['.a.1.0', /half/], ['.b', /half/]],
    ['{"a":1,"a":"\\ud83c"}', ['.a', /twice/], ['.a', /half/]],
    [
      `{"a":[${'"\\ud83c",'.repeat(9_000)}1]}`,
      ...Array.from({ length: 100 }, (_, index): [string, RegExp] => [`.a.${index}`, /half/]),
      ['.', /Not listed/],
    ],
  ]
  for (const [text, ...places] of cases) {
    const result = parseJson(Buffer.from(text))
    const errors = 'errors' in result ? result.errors : []
    t.strictSame(
      errors.map((error) => [error.path, error.errorCode]),
      places.map(([path]) => [path, 'payload.json']),
      text.slice(0, 60),
    )
    for (const [index, [, message]] of places.entries()) t.match(errors[index]?.message, message)
  }
})

t.test('only strict UTF-8 is read', async (t) => {
  const title = (bytes: number[]) =>
    Buffer.concat([Buffer.from('{"a":"'), Buffer.from(bytes), Buffer.from('"}')])
  t.strictSame(parseJson(title([0xc3, 0xbc])), { value: { a: 'ü' } })
  for (const bytes of [
    [0xfc],
    [0xc3],
    [0xc0, 0xaf],
    [0xed, 0xa0, 0x80],
    [0xf4, 0x90, 0x80, 0x80],
    [0xff, 0xfe],
  ]) {
    t.match(parseJson(title(bytes)), { errors: [{ path: '.', message: /UTF-8/ }] }, String(bytes))
  }
})

t.test('values are never repeated: any of them may be a password', async (t) => {
  const texts = [
    ...words(`{"password":geheim} {"password":"geheim {"password":"geheim"x} "geheim" geheim ["geheim"]`),
    ...['{"password":11223344556677889900}', '{"password" "geheim"}', '{"password":"a\ngeheim"}'],
  ]
  for (const text of texts) {
    const result = parseJson(Buffer.from(text))
    const messages = 'errors' in result ? result.errors.map(({ message }) => message) : []
    t.match(messages.join(), /line \d+, column \d+|expected an object|out of range/, text)
    t.notMatch(messages.join(), /geheim|1122/, text)
  }
})

t.test('at most 100 errors are listed, and a last one says that there are more', async (t) => {
  const result = parseJson(Buffer.from(`{"a":[${'1e999,'.repeat(5000)}1]}`))
  const errors = 'errors' in result ? result.errors : []
  t.equal(errors.length, 101)
  t.match(errors.at(-1), { path: '.', message: 'Not listed: at least 1 more errors' })
})

t.test('long names of deep places do not make many bytes of errors', async (t) => {
  const twice = Array.from({ length: 100 }, (_, nth) => `"語${nth}":1,"語${nth}":2`).join(',')
  const deep = `{"x":${`{"${'語'.repeat(79)}":`.repeat(61)}{${twice}}${'}'.repeat(62)}`
  const result = parseJson(Buffer.from(deep))
  const bytes = Buffer.byteLength(JSON.stringify('errors' in result ? result.errors : []))
  t.ok(bytes > 5_000 && bytes < 66_000, `${bytes} bytes for an event of ${Buffer.byteLength(deep)}`)
})

t.test('places and values in messages are printable and short', async (t) => {
  const key = `\u0007\u202e${'x'.repeat(1000)}`
  const result = parseJson(
    Buffer.from(JSON.stringify({ [key]: 1 }).replace(':1', `:1,${JSON.stringify(key)}:1e999`)),
  )
  t.equal('errors' in result && result.errors.length, 2)
  for (const error of 'errors' in result ? result.errors : []) {
    t.match(error.path, /^\.\\u\{7\}\\u\{202e\}x{60,80}…$/)
    t.ok(error.message.length < 250)
  }
})

t.test('every JSON object is read as JSON.parse reads it', async () => {
  const json = fc.dictionary(
    fc.string().filter((key) => key !== '__proto__'),
    fc.jsonValue(),
  )
  fc.assert(
    fc.property(json, fc.constantFrom(undefined, 1, '\t'), (value, space) => {
      const text = JSON.stringify(value, null, space)
      const result = parseJson(Buffer.from(text))
      const harmless = !/__proto__/.test(text) && !/\d{16}|e\+/.test(text)
      return (
        !harmless || ('value' in result && JSON.stringify(result.value) === JSON.stringify(JSON.parse(text)))
      )
    }),
  )
})

t.test('hostile payloads of 400 kB are answered, with a bounded list of errors', async (t) => {
  const payloads: Record<string, string> = {
    'open arrays': '['.repeat(400_000),
    'open objects': '{"a":'.repeat(80_000),
    'nested arrays': `{"a":${'['.repeat(200_000)}${']'.repeat(200_000)}}`,
    'one key again and again': `{${'"a":1,'.repeat(66_000)}"b":1}`,
    'escaped keys': `{${'"\\u0061":1,'.repeat(36_000)}"b":1}`,
    'many keys': `{${Array.from({ length: 35_000 }, (_, index) => `"k${index}":1`).join()}}`,
    'an open string': `{"a":"${'x'.repeat(400_000)}`,
    'a long number': `{"a":${'9'.repeat(400_000)}}`,
    'white space': `{${' '.repeat(400_000)}}`,
    'empty objects': `{"a":[${'{},'.repeat(133_000)}{}]}`,
    colons: `{${':'.repeat(400_000)}}`,
    backslashes: `{"a":"${'\\\\'.repeat(100_000)}${'\\"'.repeat(90_000)}"}`,
    'no JSON at all': `{${'a'.repeat(400_000)}`,
    'white space behind strings': `{"a":["${`"${' '.repeat(4000)},"`.repeat(95)}"]}`,
  }
  for (const [name, text] of Object.entries(payloads)) {
    // Quadratic work would run into the time limit of the test.
    const result = parseJson(Buffer.from(text))
    const errors = 'errors' in result ? result.errors.length : 0
    t.ok(errors <= 100, `${name}: ${errors} errors`)
  }
})

t.test('the first half character of any JSON is found, however deep it lies', async (t) => {
  const deep = `${'['.repeat(200_000)}"\\ud83c"${']'.repeat(200_000)}`
  const cases: [text: string, path: string | undefined][] = [
    ['"\\ud83c\\udf39"', undefined],
    ['"\\\\ud83c"', undefined],
    ['"\\ud83c"', '.'],
    ['[{"a":1},{"b":"\\udf39"},"\\ud83c"]', '.1.b'],
    ['{"__proto__":{"a":"\\ud83c"}}', '.__proto__.a'],
  ]
  for (const [text, path] of cases) t.equal(first(text), path, text)
  t.match(first(deep), /^\.0\.0\.0.*…$/)

  function first(text: string): string | undefined {
    return halfCharacters(text, JSON.parse(text)).next().value
  }
})
