import t from 'tap'
import { readReport } from '../../client/report.ts'

const report = { outcome: 'published', payloadHash: '9f86d081884c7d65', errors: [] }
const me = 'hub-client-1'

t.test('a report is read, with fields that are not known yet', async (t) => {
  t.match(readReport(bytes({ ...report, tomorrow: 1 }), me), { outcome: 'published', tomorrow: 1 })
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
    { ...report, errors: [{ path: { toString: 7 }, message: 'must be a text', errorCode: 'event.shape' }] },
    { ...report, warnings: {} },
    { ...report, warnings: [{ path: '.title', errorCode: 'text.empty' }] },
  ]) {
    t.equal(readReport(bytes(odd), me), undefined, JSON.stringify(odd))
  }
  t.equal(readReport(new Uint8Array([0xff, 0xfe]), me), undefined)
})

t.test(
  'a report of this client is read, also from a hub that does not name clients (open.md §1)',
  async (t) => {
    t.match(readReport(bytes({ ...report, clientId: me }), me), { clientId: me })
    t.match(readReport(bytes(report), me), { payloadHash: report.payloadHash })
    const odd = 'a "quoted" id\n'
    t.match(
      readReport(bytes({ ...report, clientId: odd }), odd),
      { clientId: odd },
      'an id that JSON escapes',
    )
  },
)

t.test('a report about an event of somebody else is none, whatever its texts are', async (t) => {
  for (const clientId of ['hub-client-2', `${me}1`, '', null]) {
    t.equal(readReport(bytes({ ...report, clientId }), me), undefined, String(clientId))
  }
  t.equal(readReport(bytes({ ...report, clientId: null, name: me }), me), undefined)
})

function bytes(value: unknown): Uint8Array {
  return new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value))
}
