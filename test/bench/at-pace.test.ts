import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { atPace } from '../../bench/load/at-pace.ts'

t.test('events go out when they are due, while the first has no answer', async (t) => {
  const answers: (() => void)[] = []
  const dues: number[] = []
  const sent = atPace({ events: 3, rate: 1000 }, (_index, due) => {
    dues.push(due)
    return new Promise<void>((answered) => answers.push(answered))
  })
  while (answers.length < 3) await setImmediate()
  const [first = NaN, second = NaN, third = NaN] = dues
  t.same([second - first, third - second].map(Math.round), [1, 1])
  for (const answered of answers) answered()
  await sent
})

t.test('an event that fails is told, and the others go out', async (t) => {
  let count = 0
  const sent = atPace({ events: 3, rate: Infinity }, async (index) => {
    count++
    if (index === 0) throw new Error('refused')
  })
  await t.rejects(sent, { message: 'refused' })
  t.equal(count, 3)
})
