import t from 'tap'
import { dateAndTime, relative } from '../../../web/console/words.ts'

t.test('a time that does not exist is shown as its publisher wrote it', async (t) => {
  for (const time of ['2026-02-29T12:00:00Z', '2026-11-30T24:00:00Z', 'soon']) {
    t.equal(dateAndTime(time), time)
    t.equal(relative(time), time)
  }
  t.match(dateAndTime('2024-02-29T12:00:00,5Z'), /29 Feb 2024/)
})
