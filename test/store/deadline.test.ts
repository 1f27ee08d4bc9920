import { stat } from 'node:fs/promises'
import t from 'tap'
import { inTimeOr } from '../../store/deadline.ts'
import { stall } from '../stall.ts'

t.test('an answer that came during a pause of this node is in time', async (t) => {
  const answer = inTimeOr(
    stat('/').then(() => 'answered'),
    100,
    'late',
  )
  stall(300)
  t.equal(await answer, 'answered')
})

t.test('without an answer the time is over, and an error is no answer', async (t) => {
  t.equal(await inTimeOr(new Promise(() => {}), 20, 'late'), 'late')
  await t.rejects(inTimeOr(Promise.reject(new Error('refused')), 20, 'late'), { message: 'refused' })
})
