import t from 'tap'
import { ErrorList, errorItem, errorTable, outcomeOf, pathOf, quote } from '../../event/error.ts'

t.test('the error codes are those of design.md §7, with their outcomes', async (t) => {
  const outcomes = Object.fromEntries(Object.entries(errorTable).map(([code, kind]) => [code, kind.outcome]))
  t.strictSame(outcomes, {
    'payload.json': 'invalid',
    'payload.size': 'invalid',
    'event.name': 'invalid',
    'event.expired': 'invalid',
    'identifier.urn': 'invalid',
    'topic.invalid': 'invalid',
    'event.class': 'blocked',
    'service.unknown': 'blocked',
    'service.ambiguous': 'blocked',
    'service.institution.mismatch': 'blocked',
    'service.institution.claim': 'blocked',
    'service.publisher.mismatch': 'blocked',
    'topic.denied': 'blocked',
    'feed.unavailable': 'blocked',
    'topic.created': 'failed',
    'service.failed': 'failed',
  })
})

t.test('schema errors are invalid, and so is a code nobody knows', async (t) => {
  for (const code of ['required.openapi.validation', 'someday.openapi.validation', 'constructor', 'x']) {
    t.equal(outcomeOf(code), 'invalid', code)
  }
})

t.test('an item is the sentence of its code and the detail', async (t) => {
  t.strictSame(errorItem('event.expired', '.validUntil'), {
    path: '.validUntil',
    message: 'The control state would never be valid',
    errorCode: 'event.expired',
  })
  t.equal(errorItem('payload.size', '.', '5 bytes').message, 'The payload is too large: 5 bytes')
  t.equal(errorItem('type.openapi.validation', '.a', 'x').message, 'The value has the wrong type: x')
  t.equal(errorItem('other.openapi.validation', '.a').message, 'The value is not allowed')
})

t.test('details are printable and bounded', async (t) => {
  const { message } = errorItem('service.unknown', '.', `a\n\u0000\u202e\ud800${'x'.repeat(1e6)}`)
  t.match(message, /: a\\u\{a\}\\u\{0\}\\u\{202e\}\\u\{d800\}xxx/)
  t.ok(message.length < 500)
})

t.test('values are quoted short and printable', async (t) => {
  const cases: [value: unknown, quoted: string][] = [
    ['x', '"x"'],
    ['', '""'],
    [1, '1'],
    [null, 'null'],
    [undefined, 'undefined'],
    [true, 'true'],
    [[1, 2], 'an array of 2'],
    [{ a: 1 }, 'an object'],
    ['a\tb', '"a\\u{9}b"'],
    ['x'.repeat(80), `"${'x'.repeat(80)}"`],
    ['x'.repeat(81), `"${'x'.repeat(79)}…"`],
  ]
  for (const [value, quoted] of cases) t.equal(quote(value), quoted)
})

t.test('a text of a publisher is cut between characters, never within one', async (t) => {
  const half = /\p{Cs}/u
  for (let length = 70; length < 90; length++) {
    const text = `${'x'.repeat(length)}${'🎵'.repeat(400)}`
    t.notMatch(quote(text), half, `quoted, ${length}`)
    t.notMatch(pathOf(text, text, text, text, text), half, `path, ${length}`)
    t.notMatch(errorItem('service.unknown', '.', text).message, half, `message, ${length}`)
    t.notMatch(quote(text), /\\u/, `nothing whole is escaped, ${length}`)
  }
})

t.test('a path starts at the event', async (t) => {
  t.equal(pathOf(), '.')
  t.equal(pathOf('start'), '.start')
  t.equal(pathOf('services', 0, 'id'), '.services.0.id')
  t.equal(pathOf('\n'), '.\\u{a}')
})

t.test('a path is bounded, however deep the place', async (t) => {
  t.equal(pathOf(...Array(64).fill('abc')), `.${Array(64).fill('abc').join('.')}`)
  const long = pathOf(...Array(64).fill('x'.repeat(80)))
  t.equal(long.length, 300)
  t.match(long, /^\.x{80}\.x{80}\.x+.*…$/)
})

t.test('errors are listed up to 64 KiB, then one counts the rest', async (t) => {
  const item = errorItem('service.unknown', '.services.0', '語'.repeat(400))
  const many = new ErrorList()
  for (let nth = 0; nth < 60; nth++) many.add(() => item)
  many.omit()
  const items = many.items()
  const rest = 61 - (items.length - 1)
  t.strictSame(items.at(-1), {
    path: '.',
    errorCode: 'service.unknown',
    message: `Not listed: at least ${rest} more errors`,
  })
  t.ok(items.length > 5 && JSON.stringify(items.slice(0, -1)).length <= 64 * 1024)
})
