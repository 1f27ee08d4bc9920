import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { createTurns } from '../../listener/turns.ts'

t.test('so many are let through in one turn, the others follow in the order of the calls', async (t) => {
  const turns = createTurns(2)
  const through: number[] = []
  const byTurn: number[][] = []
  for (let number = 1; number <= 7; number++) {
    if (turns.enter(() => through.push(number))) through.push(number)
  }
  t.strictSame(through, [1, 2], 'at once')
  while (through.length < 7) {
    const before = through.length
    await nextTurn()
    byTurn.push(through.slice(before))
  }
  t.ok(
    byTurn.every((each) => each.length <= 2),
    JSON.stringify(byTurn),
  )
  t.strictSame(through, [1, 2, 3, 4, 5, 6, 7])
})

t.test('a later one does not overtake those that wait', async (t) => {
  const turns = createTurns(1)
  const through: string[] = []
  turns.enter(() => undefined)
  t.notOk(turns.enter(() => through.push('waiting')))
  t.notOk(turns.enter(() => through.push('later')))
  while (through.length < 2) await nextTurn()
  t.strictSame(through, ['waiting', 'later'])
  await nextTurn()
  t.ok(
    turns.enter(() => undefined),
    'at once again',
  )
})
