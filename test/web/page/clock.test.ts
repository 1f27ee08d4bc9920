import t from 'tap'
import { now, setClock } from '../../../web/page/clock.ts'

const second = 1_000

t.test('the clock of the page follows the hub only where it is wrong', async (t) => {
  const table: [what: string, aheadMs: number, tookMs: number, isCorrected: boolean][] = [
    ['a right clock', -second, 100, false],
    ['a slow answer', -8 * second, 8 * second, false],
    ['a clock that is slow by an hour', 3600 * second, 100, true],
    ['a clock that is fast by an hour', -3600 * second, 8 * second, true],
  ]
  for (const [what, aheadMs, tookMs, isCorrected] of table) {
    const date = new Date(Date.now() + aheadMs).toUTCString()
    setClock(new Response(null, { headers: { date } }), tookMs)
    const ahead = now() - Date.now()
    if (isCorrected) t.ok(Math.abs(ahead - aheadMs) < 2 * second, what)
    else t.ok(Math.abs(ahead) < second, what)
  }
  const before = now()
  setClock(new Response(null), 100)
  t.ok(now() - before < 60 * second, 'an answer without a date changes nothing')
})
