import fc from 'fast-check'
import t from 'tap'
import {
  createEventIds,
  instantPattern,
  isInstitutionUrn,
  isLivestreamUrn,
  isPublisherUrn,
  isUrn,
  parseInstant,
} from '../../event/format.ts'
import { codeBlock, readPage } from '../documentation.ts'
import { between, words } from '../words.ts'

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
  const ascending = words(`
    2026-01-31T12:00:00Z 2026-01-31T12:00:00.000001Z 2026-01-31T12:00:00.000002Z 2026-01-31T12:00:00,001Z
    2026-01-31T12:00:00.0010009999999999999Z 2026-01-31T12:00:00.001001Z 2026-01-31T12:00:00.999999999999Z
    2026-01-31T12:00:01Z 2026-01-31T12:00.5Z 2026-01-31T12:00.50000002Z
  `).map((text) => parseInstant(text) ?? 0)
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
    '2026-01-31T12:00:00Z ',
    '2026-01-31T12:00:00Z\n',
    '2026-01-31T12:00:00\u221201:00',
    `2026-01-31T12:00:00.${'0'.repeat(400_000)}`,
    ...between(`
      now | 2026-02-30T12:00:00Z | 2026-02-29T12:00:00Z | 1900-02-29T12:00:00Z | 2026-04-31T12:00:00Z |
      2026-00-10T12:00:00Z | 2026-13-10T12:00:00Z | 2026-01-00T12:00:00Z | 2026-01-32T12:00:00Z |
      2026-01-31T24:00:00Z | 2026-01-31T12:60:00Z | 2026-01-31T12:00:60Z | 2016-12-31T23:59:60Z | 2026-01-31T12Z |
      2026-01-31T12:00:00 | 2026-01-31 | 2026-01-31 12:00:00Z | 2026-01-31T12:00:00.Z |
      2026-01-31T12:00:00+24:00 | 2026-01-31T12:00:00+01:60 | 2026-01-31T12:00:00+1:00 |
      2026-01-31T12:00:00 +01:00 | 20260131T120000Z | 20260131T1200Z | 2026-01-31T1200Z | 2026-W05-6T12:00:00Z |
      2026-031T12:00:00Z | 2026-01-31T12:00:00,Z | 2026-01-31T12.5Z | 2026-01-31T12:00:00.5.5Z |
      2026-01-31T12:00+ | +002026-01-31T12:00:00Z | ２026-01-31T12:00:00Z
    `),
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

t.test('a URN is urn:org:<kind>:<id> in lower-case letters, digits and dashes', async (t) => {
  for (const text of [
    'urn:org:publisher:1',
    'urn:org:a-b:c-d',
    'urn:org:permanent-livestream:234690e18c2c7863',
  ]) {
    t.equal(isUrn(text), true, text)
  }
  const wrong = [
    '',
    'urn:org:publisher:a\n',
    ' urn:org:publisher:a',
    ...words(`
      urn:org:publisher: urn:org::1 urn:org:publisher:A urn:org:publisher:a:b urn:org:publisher:a/b
      urn:org:publisher:a.b urn:org:publisher:+ urn:org:publisher:# URN:org:publisher:a urn:other:publisher:a
      urn:org:publisher:ä 282310
    `),
  ]
  for (const text of wrong) t.equal(isUrn(text), false, JSON.stringify(text))
  const longest = 'urn:org:publisher:'.padEnd(200, '1')
  t.equal(isUrn(longest), true, '200 characters')
  t.equal(isUrn(`${longest}1`), false, '201 characters')
})

t.test('a URN has one kind', async (t) => {
  t.equal(isUrn('urn:org:show:1', 'show'), true)
  t.equal(isUrn('urn:org:shows:1', 'show'), false)
  t.equal(isUrn('urn:org:show:A', 'show'), false)
  t.equal(isInstitutionUrn('urn:org:institution:1'), true)
  t.equal(isInstitutionUrn('urn:org:publisher:1'), false)
  t.equal(isPublisherUrn('urn:org:publisher:1'), true)
  t.equal(isPublisherUrn('urn:org:institution:1'), false)
  for (const kind of ['permanent-livestream', 'livestream', 'event-livestream']) {
    t.equal(isLivestreamUrn(`urn:org:${kind}:1`), true, kind)
  }
  for (const kind of ['event', 'publisher', 'livestream-x', 'constructor']) {
    t.equal(isLivestreamUrn(`urn:org:${kind}:1`), false, kind)
  }
})

t.test('ids are numeric strings', async (t) => {
  t.match(createEventIds()(), /^[1-9]\d+$/)
})

t.test('ids of one process increase strictly', async (t) => {
  const nextId = createEventIds()
  const ids = Array.from({ length: 200_000 }, () => BigInt(nextId()))
  t.ok(ids.every((id, index) => index === 0 || id > (ids[index - 1] ?? id)))
})

t.test('ids increase when the clock stands still for more than 65,536 of them', async (t) => {
  const nextId = createEventIds(() => 1_769_857_200_000)
  const ids = Array.from({ length: 150_000 }, () => BigInt(nextId()))
  t.ok(ids.every((id, index) => index === 0 || id > (ids[index - 1] ?? id)))
})

t.test('ids increase when the clock steps back', async (t) => {
  const times = [1000, 2000, 500, 500, 1999, 2001]
  const nextId = createEventIds(() => times.shift() ?? 0)
  const ids = Array.from({ length: 8 }, () => BigInt(nextId()))
  t.strictSame(
    ids,
    ids.toSorted((a, b) => (a < b ? -1 : 1)),
  )
  t.equal(new Set(ids).size, 8)
})

t.test('ids of different nodes are ordered by time and differ within a millisecond', async (t) => {
  let now = 1_769_857_200_000
  const nodes = Array.from({ length: 50 }, () => createEventIds(() => now))
  const first = nodes.map((nextId) => nextId())
  now++
  const second = nodes.map((nextId) => nextId())
  t.equal(new Set([...first, ...second]).size, 100)
  t.ok(second.every((later) => first.every((earlier) => BigInt(later) > BigInt(earlier))))
})
