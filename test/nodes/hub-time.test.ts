import pino from 'pino'
import t, { type Test } from 'tap'
import { openHubTime } from '../../broker/hub-time.ts'
import { createSharedSpace, settled } from '../shared-store.ts'

const day = 24 * 3_600_000

/** Opens nodes of one hub, each with a wall clock and a monotonic clock that the test moves. */
function openHub(t: Test) {
  const space = createSharedSpace()
  return async (wall: number, passed = 0) => {
    const store = space.openFollowed(t)
    const time = { wall, passed }
    const lines: { msg: string; jumpSeconds: number }[] = []
    const log = pino({ level: 'debug' }, { write: (line: string) => lines.push(JSON.parse(line)) })
    const sources = { clock: () => time.wall, monotonic: () => time.passed }
    const hubTime = await openHubTime({ store, isLeader: () => true, log, ...sources })
    store.start()
    return { store, hubTime, time, lines }
  }
}

t.test('nodes agree how long the hub has run, whatever their clocks say', async (t) => {
  const open = openHub(t)
  const a = await open(0, 5)
  a.time.passed += day
  t.equal(a.hubTime.now(), day)
  await a.hubTime.save()
  const b = await open(100 * day, 77)
  t.equal(b.hubTime.now(), day, 'a new node goes on where the others are')
  t.same(b.lines, [], 'its clock may be right')
  b.time.passed += 10
  a.time.passed += 30
  await a.hubTime.save()
  await settled(b.store)
  t.equal(b.hubTime.now(), day + 30, 'the one ahead is right')
  await b.hubTime.save()
  a.time.passed += 5
  await b.hubTime.save()
  await settled(a.store)
  t.equal(a.hubTime.now(), day + 35, 'and does not go back')
})

t.test('a start with a clock behind the last run says so', async (t) => {
  const open = openHub(t)
  const first = await open(10 * day)
  await first.hubTime.save()
  const second = await open(9 * day)
  t.match(second.lines, [{ msg: 'the clock is behind that of the last run', jumpSeconds: -86_400 }])
})

t.test('a jump is what the clock moved beyond the time that passed', async (t) => {
  const { hubTime, time, lines } = await openHub(t)(0)
  for (const [wall, passed, jump] of [
    [30_000, 30_000, undefined],
    [day, day, undefined],
    [30_000 + 60_000, 30_000, undefined],
    [30_000 + 61_000, 30_000, 61],
    [-day, 30_000, -86_430],
    [30_000, day, -86_370],
  ] as const) {
    lines.length = 0
    time.wall += wall
    time.passed += passed
    hubTime.checkClock()
    t.same(
      lines.map(({ jumpSeconds }) => jumpSeconds),
      jump === undefined ? [] : [jump],
    )
  }
})
