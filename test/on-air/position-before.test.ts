import t from 'tap'
import type { Entry } from '../../journal/entry.ts'
import { createPositionBefore } from '../../on-air/position-before.ts'

/** A journal of which only the times of acceptance are asked. `pass` lets time pass, on both clocks. */
function start(clock = { now: 1_000_000, elapsed: 0 }) {
  const accepted: number[] = []
  let listener: (entry: Entry, bytes: number) => void = () => undefined
  const journal = {
    onEach(next: (entry: Entry, bytes: number) => void) {
      listener = next
      return () => undefined
    },
  }
  const history = {
    positionAt: async (at: number) => {
      const found = accepted.findIndex((time) => time >= at)
      return (found < 0 ? accepted.length : found) + 1
    },
  }
  const parts = { journal, history, clock: () => clock.now }
  return {
    clock,
    before: createPositionBefore(parts, () => clock.elapsed),
    /** An event is accepted. */
    accept(): void {
      accepted.push(clock.now)
      listener({ position: accepted.length } as Entry, 0)
    },
    pass(ms: number): void {
      clock.now += ms
      clock.elapsed += ms
    },
  }
}

t.test('the last position that was accepted so long ago', async (t) => {
  const { before, accept, pass } = start()
  t.equal(await before(2_000), 0)
  accept()
  pass(1_000)
  accept()
  pass(1_500)
  t.same([await before(2_000), await before(1_000), await before(3_000)], [1, 2, 0])
})

t.test('a clock that is set back holds nothing up', async (t) => {
  const { before, accept, pass, clock } = start()
  accept()
  pass(1_000)
  clock.now -= 3_600_000
  accept()
  t.equal(await before(2_000), 0, 'not yet')
  pass(1_000)
  t.equal(await before(2_000), 1)
  pass(1_000)
  t.equal(await before(2_000), 2)
})

t.test('of many events the last one counts for all, and none too early', async (t) => {
  const { before, accept, pass, clock } = start()
  clock.now -= 3_600_000
  for (let nth = 0; nth < 100_000; nth++) {
    accept()
    pass(7)
  }
  clock.now -= 3_600_000
  const position = await before(2_000)
  t.ok(position <= 100_000 - 2_000 / 7 + 1, `${position} was accepted so long ago`)
  t.ok(position > 100_000 - 2_200 / 7, `${position} is the newest of these, but for a tenth of a second`)
})
