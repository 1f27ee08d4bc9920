import t from 'tap'
import { readWeek, weekBeside, weekOf } from '../../event/week.ts'

/* Weeks as ISO 8601 counts them, by UTC. */

t.test('the week of a day, at the borders of years', async (t) => {
  for (const [day, week] of [
    ['2026-11-29', '2026-W48'],
    ['2026-11-30', '2026-W49'],
    ['2026-01-01', '2026-W01'],
    ['2025-12-28', '2025-W52'],
    ['2025-12-29', '2026-W01'],
    ['2021-01-03', '2020-W53'],
    ['2021-01-04', '2021-W01'],
    ['2027-01-01', '2026-W53'],
    ['1970-01-01', '1970-W01'],
  ] as const) {
    t.equal(weekOf(Date.parse(day)).name, week, day)
    t.equal(weekOf(Date.parse(`${day}T23:59:59.999Z`)).name, week, `the end of ${day}`)
  }
})

t.test('forty years of weeks follow each other without a gap, and each is found by its name', async (t) => {
  let week = weekOf(Date.parse('2000-01-05'))
  const names = new Set<string>()
  for (let n = 0; n < 40 * 52; n++) {
    names.add(week.name)
    t.same(readWeek(week.name), week)
    const next = weekBeside(week, 1)
    t.equal(next.from, week.to)
    t.ok(next.name > week.name, 'names are in the order of time')
    week = next
  }
  t.equal(names.size, 40 * 52)
})

t.test('what is no week', async (t) => {
  for (const name of ['2026-W54', '2026-W00', '2025-W53', '2026-48', '2026-w48', '2026-W48 ', '', '26-W48'])
    t.equal(readWeek(name), undefined, name)
  t.equal(readWeek('2026-W53')?.name, '2026-W53', 'a year with 53 weeks')
})
