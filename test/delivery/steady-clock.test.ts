import t from 'tap'
import { createSteadyClock } from '../../delivery/steady-clock.ts'

t.test('a jump ahead does not count, a clock that is set back does', async (t) => {
  let now = 1_000_000
  let elapsed = 500
  const steady = createSteadyClock(
    () => now,
    () => elapsed,
  )
  t.equal(steady(), 1_000_000)
  now += 60_000
  elapsed += 60_000
  t.equal(steady(), 1_060_000)
  now += 8 * 24 * 3_600_000
  elapsed += 1_000
  t.equal(steady(), 1_061_000)
  now = 900_000
  t.equal(steady(), 900_000)
  now += 8 * 24 * 3_600_000
  elapsed += 1_000
  t.equal(steady(), 901_000, 'also when the clock that was set back is set right again')
})
