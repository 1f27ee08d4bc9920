import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { createPacing, timePerTurn } from '../../listener/pacing.ts'
import { stall } from '../stall.ts'

t.test('so many are let through in one turn, the others follow in the order of the calls', async (t) => {
  const pacing = createPacing(2)
  const through: number[] = []
  const byTurn: number[][] = []
  for (let number = 1; number <= 7; number++) {
    if (pacing.enter(() => through.push(number))) through.push(number)
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

t.test('a turn has so many milliseconds, with what follows from a call', async (t) => {
  const fits = timePerTurn(5)
  const fitted: boolean[] = []
  const work = async () => {
    fitted.push(fits())
    await undefined
    // What an await separates from a call belongs to it as well.
    if (fitted.length === 1) stall(10)
  }
  await new Promise<void>((resolve) => {
    for (let step = 0; step < 3; step++) setImmediate(() => void work())
    setImmediate(resolve)
  })
  t.strictSame(fitted, [true, false, false])
  await nextTurn()
  t.ok(fits(), 'the next turn has its own')
})

t.test('a later one does not overtake those that wait', async (t) => {
  const pacing = createPacing(1)
  const through: string[] = []
  const enter = (name: string) => {
    if (pacing.enter(() => through.push(name))) through.push(name)
  }
  enter('first')
  // In the next turn, before those that wait are let through: there is room for one.
  setImmediate(enter, 'later')
  enter('waiting')
  while (through.length < 3) await nextTurn()
  t.strictSame(through, ['first', 'waiting', 'later'])
  await nextTurn()
  t.ok(
    pacing.enter(() => undefined),
    'at once again',
  )
})

t.test('askers are served alternately: one that waits with many holds up no other', async (t) => {
  const pacing = createPacing(1)
  const through: string[] = []
  pacing.enter(() => undefined)
  for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1']) {
    pacing.enter(() => through.push(name), { asker: name.slice(0, 1) })
  }
  while (through.length < 7) await nextTurn()
  t.strictSame(through, ['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4'])
})

t.test('what is over takes no turn', async (t) => {
  const pacing = createPacing(1)
  const through: number[] = []
  pacing.enter(() => undefined)
  for (let number = 1; number <= 100; number++) {
    pacing.enter(() => through.push(number), { isOver: () => number % 50 !== 0 })
  }
  let waited = 0
  while (through.length < 2) {
    await nextTurn()
    waited++
  }
  t.strictSame(through, [50, 100])
  t.ok(waited <= 4, `${waited} turns`)
})
