import t from 'tap'
import { createSlowStart } from '../../../delivery/runner/slow-start.ts'

const a = { owner: 'one', endpoint: 'https://a.example' }
const b = { owner: 'one', endpoint: 'https://b.example' }

function start() {
  const time = { now: 1_000_000 }
  const slowStart = createSlowStart(() => time.now)
  return {
    time,
    slowStart,
    /** The endpoint was down for 3 s and has just answered again. */
    recover(place = a): void {
      for (let failure = 0; failure < 3; failure++) {
        slowStart.failed(place)
        time.now += 1_000
      }
      slowStart.succeeded(place)
    },
  }
}

t.test('who works is never held back', async (t) => {
  const { slowStart, time } = start()
  for (let count = 0; count < 100; count++) {
    t.equal(slowStart.waitFor(a), 0)
    slowStart.succeeded(a)
  }
  for (const failures of [1, 2]) {
    for (let failure = 0; failure < failures; failure++) slowStart.failed(a)
    time.now += 5_000
    slowStart.succeeded(a)
    t.equal(slowStart.waitFor(a), 0, `${failures} failures are no outage`)
  }
  for (let failure = 0; failure < 50; failure++) slowStart.failed(a)
  slowStart.succeeded(a)
  t.equal(slowStart.waitFor(a), 0, 'nor are many in one moment')
})

t.test('who was down gets 5 per second, then twice as much each second, then all', async (t) => {
  const { slowStart, time, recover } = start()
  recover()
  const began = time.now
  const starts: number[] = []
  for (let count = 0; count < 6_000; count++) starts.push(time.now + slowStart.waitFor(a) - began)
  const within = (from: number) => starts.filter((at) => at >= from && at < from + 1_000).length
  t.ok(within(0) >= 3 && within(0) <= 8, `first second: ${within(0)}`)
  t.ok(within(1_000) >= 8 && within(1_000) <= 20, `second one: ${within(1_000)}`)
  t.ok(within(2_000) >= 20 && within(2_000) <= 40, `third one: ${within(2_000)}`)
  t.ok(Math.max(...starts) < 15_000)
  for (let second = 0; second < 15; second++) {
    t.ok(within(second * 1_000) <= 1_001, `${within(second * 1_000)} in second ${second}`)
  }
  time.now += 10_000
  t.equal(slowStart.waitFor(a), 0)
  t.equal(slowStart.waitFor(b), 0, 'others were never held back')
})

t.test('who shares a host with an owner whose deliveries failed is not held back', async (t) => {
  const { slowStart, recover } = start()
  recover(a)
  t.ok(slowStart.waitFor(a) > 0)
  t.equal(slowStart.waitFor({ ...a, owner: 'another' }), 0)
})

t.test('of ten thousand endpoints that fail, the first is forgotten', async (t) => {
  for (const [others, isForgotten] of [
    [9_999, false],
    [10_000, true],
  ] as const) {
    const { slowStart, recover } = start()
    recover(a)
    for (let one = 0; one < others; one++) slowStart.failed({ owner: 'many', endpoint: `${one}` })
    t.equal(slowStart.waitFor(a) === 0, isForgotten)
  }
})

t.test('who fails again starts again', async (t) => {
  const { slowStart, recover } = start()
  recover()
  t.ok(slowStart.waitFor(a) > 0)
  slowStart.failed(a)
  t.equal(slowStart.waitFor(a), 0, 'the back-off of its queues is enough')
  recover()
  t.ok(slowStart.waitFor(a) > 0)
})

t.test('a clock that is set back keeps nobody waiting', async (t) => {
  const { slowStart, time, recover } = start()
  recover()
  t.ok(slowStart.waitFor(a) > 0)
  time.now -= 86_400_000
  t.equal(slowStart.waitFor(a), 0)
})

t.test('a clock that is set back during an outage does not end it', async (t) => {
  const { slowStart, time } = start()
  for (let failure = 0; failure < 10; failure++) slowStart.failed(a)
  time.now -= 86_400_000
  t.equal(slowStart.waitFor(a), 0)
  slowStart.succeeded(a)
  t.equal(slowStart.waitFor(a), 0)
})
