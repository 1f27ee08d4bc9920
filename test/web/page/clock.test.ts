import t from 'tap'
import { now, setClock } from '../../../web/page/clock.ts'

const second = 1_000

t.test('the clock of the page follows the hub only where it is wrong', async (t) => {
  const answers: [what: string, dateAheadMs: number, tookMs: number, aheadMs: number][] = [
    ['a right clock', -second, 100, 0],
    ['a slow answer with the date of its start', -8 * second, 8 * second, 0],
    ['a clock that is fast by ten seconds', -10 * second, 100, -10 * second],
    ['a slow answer with the date of its end', -10 * second, 8 * second, -10 * second],
    ['a slow answer with the date of its start', -18 * second, 8 * second, -10 * second],
    ['a clock that is slow by an hour', 3600 * second, 100, 3600 * second],
    ['a clock that was put right', 0, 100, 0],
  ]
  for (const [what, dateAheadMs, tookMs, aheadMs] of answers) {
    const date = new Date(Date.now() + dateAheadMs).toUTCString()
    setClock(new Response(null, { headers: { date } }), Date.now() - tookMs)
    t.ok(Math.abs(now() - Date.now() - aheadMs) < 2 * second, what)
  }
  const before = now()
  setClock(new Response(null), Date.now())
  t.ok(Math.abs(now() - before) < 60 * second, 'an answer without a date changes nothing')
})
