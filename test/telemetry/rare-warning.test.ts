import t from 'tap'
import { createRareWarning } from '../../telemetry/rare-warning.ts'

function start() {
  const lines: unknown[] = []
  const time = { now: 0 }
  const log = { warn: (fields: unknown) => lines.push(fields) }
  const message = 'the headers of a proxy contradict each other'
  const warn = createRareWarning(log, message, () => time.now)
  return { lines, time, warn }
}

t.test('one line a minute about a subject says how many warnings it stands for', async (t) => {
  const { lines, time, warn } = start()
  for (let count = 0; count < 1000; count++) warn('app', { remoteAddress: 'x' })
  warn('other', { remoteAddress: 'y' })
  t.same(lines, [
    { remoteAddress: 'x', times: 1 },
    { remoteAddress: 'y', times: 1 },
  ])
  time.now = 60_000
  warn('app', { remoteAddress: 'z' })
  t.same(lines.at(-1), { remoteAddress: 'z', times: 1000 })
})

t.test('subjects without end have 100 lines a minute, and are forgotten', async (t) => {
  const { lines, time, warn } = start()
  warn('first', { remoteAddress: 'x' })
  warn('first', { remoteAddress: 'x' })
  for (let address = 1; address < 10_000; address++) warn(`${address}`, { remoteAddress: 'x' })
  t.equal(lines.length, 100)
  time.now = 60_000
  warn('late', { remoteAddress: 'x' })
  t.same(
    lines.at(-1),
    { remoteAddress: 'x', times: 1, leftOut: 9901 },
    'with the one of a subject that is forgotten',
  )
  for (let address = 10_000; address < 20_000; address++) warn(`${address}`, { remoteAddress: 'x' })
  t.equal(lines.length, 200)
})
