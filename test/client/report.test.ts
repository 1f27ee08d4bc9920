import t from 'tap'
import { readReport } from '../../client/report.ts'

const report = { outcome: 'published', payloadHash: '9f86d081884c7d65', errors: [] }

t.test('a report is read, with fields that are not known yet', async (t) => {
  t.match(readReport(bytes({ ...report, tomorrow: 1 })), { outcome: 'published', tomorrow: 1 })
})

t.test('what lacks the fields that an event is recognised and judged by is no report', async (t) => {
  for (const odd of [
    'no JSON',
    '',
    '7',
    'null',
    '[]',
    { ...report, outcome: 'shredded' },
    { ...report, payloadHash: 7 },
    { ...report, errors: 'none' },
    { ...report, errors: [null] },
    { ...report, warnings: {} },
  ]) {
    t.equal(readReport(bytes(odd)), undefined, JSON.stringify(odd))
  }
  t.equal(readReport(new Uint8Array([0xff, 0xfe])), undefined)
})

function bytes(value: unknown): Uint8Array {
  return new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value))
}
