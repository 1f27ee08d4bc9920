import t from 'tap'
import { createInFlight } from '../../bridge-https/in-flight.ts'

t.test('an asker has so many bytes under way, the others in order', async (t) => {
  const inFlight = createInFlight(10)
  const went: string[] = []
  const enter = async (name: string, bytes: number, asker = 'a') => {
    const leave = await inFlight.enter(asker, bytes)
    went.push(name)
    return leave
  }
  const first = enter('first', 6)
  const second = enter('second', 4)
  const third = enter('third', 8)
  const fourth = enter('fourth', 1)
  const other = enter('of another', 50, 'b')
  const leave = { first: await first, second: await second, other: await other }
  t.same(went, ['first', 'second', 'of another'], 'the fourth waits behind the third')
  leave.first?.()
  leave.second?.()
  const leaveThird = await third
  await fourth
  t.same(went.slice(3), ['third', 'fourth'])
  const large = enter('large', 11)
  leaveThird?.()
  ;(await fourth)?.()
  t.ok(await large, 'one that is too large goes on alone')
})

t.test('an asker of whom too much waits is refused', async (t) => {
  const inFlight = createInFlight(10)
  const mebibyte = 1024 * 1024
  t.ok(await inFlight.enter('a', mebibyte))
  const waiting = [1, 2, 3, 4].map(() => inFlight.enter('a', mebibyte))
  t.equal(await inFlight.enter('a', 1), undefined)
  t.ok(await inFlight.enter('b', 1), 'others are not')
  t.equal(waiting.length, 4)
})
