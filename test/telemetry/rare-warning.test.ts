import t from 'tap'
import { createRareWarning } from '../../telemetry/rare-warning.ts'

function start() {
  const lines: object[] = []
  const time = { now: 0 }
  const warn = createRareWarning({ warn: (fields: object) => lines.push(fields) }, 'too much', () => time.now)
  return { lines, time, warn }
}

t.test('one line a minute about a subject says how many warnings it stands for', async (t) => {
  const { lines, time, warn } = start()
  for (let count = 0; count < 1000; count++) warn('app', { filter: 'x' })
  warn('other', { filter: 'y' })
  t.same(lines, [
    { filter: 'x', times: 1 },
    { filter: 'y', times: 1 },
  ])
  time.now = 60_000
  warn('app', { filter: 'z' })
  t.same(lines.at(-1), { filter: 'z', times: 1000 })
})

t.test('subjects without end have 100 lines a minute, and are forgotten', async (t) => {
  const { lines, time, warn } = start()
  warn('first', {})
  warn('first', {})
  for (let address = 1; address < 10_000; address++) warn(`${address}`, {})
  t.equal(lines.length, 100)
  time.now = 60_000
  warn('late', {})
  t.same(lines.at(-1), { times: 1, leftOut: 9901 }, 'with the one of a subject that is forgotten')
  for (let address = 10_000; address < 20_000; address++) warn(`${address}`, {})
  t.equal(lines.length, 200)
})
