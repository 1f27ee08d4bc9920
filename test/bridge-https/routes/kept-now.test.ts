import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { createKeptNow } from '../../../bridge-https/routes/kept-now.ts'
import type { OnAir } from '../../../on-air/on-air.ts'
import { viewOf } from '../../../on-air/view.ts'

t.test('an answer with hundreds of livestreams leaves room for others in each turn', async (t) => {
  let made = 0
  const onAir: Pick<OnAir, 'now' | 'momentBefore' | 'onChange'> = {
    async now() {
      made++
      return { text: '{}', until: Infinity }
    },
    momentBefore: async () => ({ position: 1, now: 1 }),
    onChange: () => undefined,
  }
  const keptNow = createKeptNow({ onAir, feed: () => undefined })
  const ids = Array.from({ length: 200 }, (_, nth) => `${nth}`)
  for (const delayMs of [0, 1_000]) {
    made = 0
    let isOver = false
    const answers = [1, 2, 3].map(() => keptNow(ids, viewOf(['radio/#']), delayMs))
    void Promise.all(answers).then(() => (isOver = true))
    let most = 0
    while (!isOver) {
      const before = made
      await nextTurn()
      most = Math.max(most, made - before)
    }
    t.ok(made >= 200)
    t.ok(most <= 20, `${most} livestreams in one turn`)
  }
})
