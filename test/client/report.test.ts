import t from 'tap'
import { reportReader } from '../../client/report.ts'

const report = { outcome: 'published', payloadHash: '9f86d081884c7d65', errors: [] }
const me = 'hub-client-1'

t.test('a report is read, with fields that are not known yet', async (t) => {
  t.match(reportReader(me)(bytes({ ...report, tomorrow: 1 })), { outcome: 'published', tomorrow: 1 })
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
    t.equal(reportReader(me)(bytes(odd)), undefined, JSON.stringify(odd))
  }
  t.equal(reportReader(me)(new Uint8Array([0xff, 0xfe])), undefined)
})

t.test(
  'a report of this client is read, also from a hub that does not name clients (open.md §1)',
  async (t) => {
    t.match(reportReader(me)(bytes({ ...report, clientId: me })), { clientId: me })
    t.match(reportReader(me)(bytes(report)), { payloadHash: report.payloadHash })
    const odd = 'a "quoted" id\n'
    t.match(
      reportReader(odd)(bytes({ ...report, clientId: odd })),
      { clientId: odd },
      'an id that JSON escapes',
    )
  },
)

t.test('a report about an event of somebody else is none, whatever its texts are', async (t) => {
  for (const clientId of ['hub-client-2', `${me}1`, '', null]) {
    t.equal(reportReader(me)(bytes({ ...report, clientId })), undefined, String(clientId))
  }
  t.equal(reportReader(me)(bytes({ ...report, clientId: null, name: me })), undefined)
})

function bytes(value: unknown): Uint8Array {
  return new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value))
}
