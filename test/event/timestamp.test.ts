import fc from 'fast-check'
import t from 'tap'
import { instantPattern, parseInstant } from '../../event/timestamp.ts'
import { codeBlock, readPage } from '../documentation.ts'

t.test('an instant is a calendar date, T, hours and minutes, and an offset', async (t) => {
  const instants: [text: string, same: string][] = [
    ['2026-01-31T12:00:00Z', '2026-01-31T12:00:00.000Z'],
    ['2026-01-31T12:00:00+01:00', '2026-01-31T11:00:00.000Z'],
    ['2026-01-31T12:00:00+0100', '2026-01-31T11:00:00.000Z'],
    ['2026-01-01T00:30:00+05:45', '2025-12-31T18:45:00.000Z'],
    ['2026-12-31T23:30:00-11:30', '2027-01-01T11:00:00.000Z'],
    ['2026-01-31T12:00:00-00:00', '2026-01-31T12:00:00.000Z'],
    ['2026-01-31T12:00:00.1Z', '2026-01-31T12:00:00.100Z'],
    ['2026-01-31T12:00:00,1Z', '2026-01-31T12:00:00.100Z'],
    ['2026-01-31T12:00Z', '2026-01-31T12:00:00.000Z'],
    ['2026-01-31T12:00+0530', '2026-01-31T06:30:00.000Z'],
    ['2026-01-31T12:00.5Z', '2026-01-31T12:00:30.000Z'],
    ['2026-01-31T12:00,0166Z', '2026-01-31T12:00:00.996Z'],
    ['2026-01-31t12:00:00z', '2026-01-31T12:00:00.000Z'],
    ['2026-01-31T12:00:00+01', '2026-01-31T11:00:00.000Z'],
    ['2026-01-31T12:00:00-11', '2026-01-31T23:00:00.000Z'],
    [`2026-01-31T12:00:00.${'0'.repeat(400_000)}Z`, '2026-01-31T12:00:00.000Z'],
    ['2028-02-29T23:59:59Z', '2028-02-29T23:59:59.000Z'],
    ['2000-02-29T00:00:00Z', '2000-02-29T00:00:00.000Z'],
    ['0099-12-31T00:00:00Z', '0099-12-31T00:00:00.000Z'],
    ['1969-12-31T23:59:59.5Z', '1969-12-31T23:59:59.500Z'],
  ]
  for (const [text, same] of instants) t.equal(parseInstant(text), Date.parse(same), text)
})

t.test('instants are exact to the microsecond', async (t) => {
  const ascending = [
    '2026-01-31T12:00:00Z',
    '2026-01-31T12:00:00.000001Z',
    '2026-01-31T12:00:00.000002Z',
    '2026-01-31T12:00:00,001Z',
    '2026-01-31T12:00:00.0010009999999999999Z',
    '2026-01-31T12:00:00.001001Z',
    '2026-01-31T12:00:00.999999999999Z',
    '2026-01-31T12:00:01Z',
    '2026-01-31T12:00.5Z',
    '2026-01-31T12:00.50000002Z',
  ].map((text) => parseInstant(text) ?? 0)
  t.strictSame(
    ascending,
    [...ascending].sort((a, b) => a - b),
  )
  t.equal(
    new Set(ascending).size,
    ascending.length - 1,
    'what differs in nanoseconds only is the same instant',
  )
  t.equal(parseInstant('2026-01-31T12:00:00.1234567Z'), parseInstant('2026-01-31T12:00:00.123456Z'))
})

t.test('what is no instant is refused', async (t) => {
  const texts = [
    '',
    'now',
    '2026-02-30T12:00:00Z',
    '2026-02-29T12:00:00Z',
    '1900-02-29T12:00:00Z',
    '2026-04-31T12:00:00Z',
    '2026-00-10T12:00:00Z',
    '2026-13-10T12:00:00Z',
    '2026-01-00T12:00:00Z',
    '2026-01-32T12:00:00Z',
    '2026-01-31T24:00:00Z',
    '2026-01-31T12:60:00Z',
    '2026-01-31T12:00:60Z',
    '2016-12-31T23:59:60Z',
    '2026-01-31T12Z',
    '2026-01-31T12:00:00',
    '2026-01-31',
    '2026-01-31 12:00:00Z',
    '2026-01-31T12:00:00.Z',
    '2026-01-31T12:00:00+24:00',
    '2026-01-31T12:00:00+01:60',
    '2026-01-31T12:00:00+1:00',
    '2026-01-31T12:00:00 +01:00',
    '2026-01-31T12:00:00Z ',
    '2026-01-31T12:00:00Z\n',
    '20260131T120000Z',
    '20260131T1200Z',
    '2026-01-31T1200Z',
    '2026-W05-6T12:00:00Z',
    '2026-031T12:00:00Z',
    '2026-01-31T12:00:00,Z',
    '2026-01-31T12.5Z',
    '2026-01-31T12:00:00.5.5Z',
    '2026-01-31T12:00:00\u221201:00',
    '2026-01-31T12:00+',
    `2026-01-31T12:00:00.${'0'.repeat(400_000)}`,
    '+002026-01-31T12:00:00Z',
    '２026-01-31T12:00:00Z',
  ]
  for (const text of texts) t.equal(parseInstant(text), undefined, JSON.stringify(text))
})

t.test('every instant JavaScript writes is read back', async () => {
  const date = fc.date({
    min: new Date('0000-01-01T00:00:00Z'),
    max: new Date('9999-12-31T23:59:59Z'),
    noInvalidDate: true,
  })
  fc.assert(fc.property(date, (at) => parseInstant(at.toISOString()) === at.getTime()))
})

t.test('descriptions have its form, in the words of every tool', async (t) => {
  t.notMatch(instantPattern, '(?<', 'not every one knows named groups')
  const form = new RegExp(instantPattern)
  for (const text of ['2026-01-31T12:00:00Z', '2026-01-31T12:00:00.123456789+0100', '2026-01-31t12:00,5+01'])
    t.match(text, form)
  for (const text of ['2026-01-31T12Z', '2026-01-31', '2026-01-31T12:00:00']) t.notMatch(text, form)
})

t.test('the page for publishers lists what is accepted and what is refused', async (t) => {
  const section = readPage('publishers.md').split('### Times\n')[1]?.split('\n### ')[0] ?? ''
  const [accepted = '', refused = ''] = section.split('| refused |')
  const forms = (table: string) =>
    [...table.matchAll(/^\| (`[^|]*`) \|/gm)].flatMap(([, cell = '']) =>
      [...cell.matchAll(/`([^`]+)`/g)].map(([, form = '']) => form),
    )
  t.ok(forms(accepted).length >= 10 && forms(refused).length >= 10)
  for (const form of forms(accepted)) t.not(parseInstant(form), undefined, form)
  for (const form of forms(refused)) t.equal(parseInstant(form), undefined, form)

  const code = codeBlock(readPage('subscribers.md'), 'js', 'instantOf')
  const page = await import(`data:text/javascript,${encodeURIComponent(`${code}\nexport { instantOf }`)}`)
  for (const form of forms(accepted)) {
    t.ok(Math.abs(page.instantOf(form) - (parseInstant(form) ?? 0)) < 0.001, `subscribers read ${form}`)
  }
})
