import t from 'tap'
import { isTime, localTime } from '../../../cli/time/local-time.ts'

/** In this time zone, clocks go forward at 2:00 on 29 March 2026. */
process.env.TZ = 'Europe/Berlin'

t.test('a moment is shown by the clock of the operator, with its offset', async (t) => {
  for (const [moment, shown] of [
    ['2026-03-29T00:59:59.250Z', '2026-03-29T01:59:59.250+01:00'],
    ['2026-03-29T01:00:00.000Z', '2026-03-29T03:00:00.000+02:00'],
    ['2026-02-28T23:30:00Z', '2026-03-01T00:30:00+01:00'],
    ['2026-03-01T18:02:00.123456-03:30', '2026-03-01T22:32:00.123456+01:00'],
  ]) {
    t.equal(localTime(moment), shown)
    t.equal(Date.parse(String(shown)), Date.parse(String(moment)), 'it is the same one')
  }
})

t.test('with offsets of all kinds', async (t) => {
  t.teardown(() => {
    process.env.TZ = 'Europe/Berlin'
  })
  for (const [zone, shown] of [
    ['UTC', '2026-03-01T18:02:00Z'],
    ['America/St_Johns', '2026-03-01T14:32:00-03:30'],
    ['Asia/Kathmandu', '2026-03-01T23:47:00+05:45'],
  ] as const) {
    process.env.TZ = zone
    t.equal(localTime('2026-03-01T18:02:00Z'), shown, zone)
  }
})

t.test('what is no such moment stays as it is', async (t) => {
  for (const value of ['', '-', '2026-03-01', '2026-13-01T18:02:00Z', '18:02', 'Z', null, undefined, 7])
    t.equal(localTime(value), value)
  // A refused event is listed with the time that its publisher wrote.
  for (const value of ['2026-02-29T12:00:00Z', '2026-11-30T24:00:00Z', '9999-12-31T23:59:59Z'])
    t.equal(localTime(value), value)
})

t.test('only where a moment is meant', async (t) => {
  for (const path of ['at', 'paused.at', 'createdAt', 'eventTime', 'time', 'oldest', 'nextTry', 'since'])
    t.ok(isTime(path), path)
  for (const path of ['playlistItemId', 'title', 'name', 'format', 'lastReason', 'messageId', 'uptime'])
    t.notOk(isTime(path), path)
})
