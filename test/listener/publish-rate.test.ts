import t from 'tap'
import { costOf, createPublishRate } from '../../listener/publish-rate.ts'

t.test('a credential may publish its rate, and a burst of twice that', async (t) => {
  const rate = createPublishRate(10)
  const burst = Array.from({ length: 20 }, () => rate.take('a', 0))
  t.same(burst, Array(20).fill(0))
  t.equal(rate.take('a', 0), 100, 'then reading pauses for the time of one event')
  t.equal(rate.take('b', 0), 0, 'others are not held back')
  t.equal(rate.take('a', 1000), 0, 'after a while it goes on')
  t.equal(createPublishRate(0).take('a', 0), 0, '0 is no limit')
  for (let other = 0; other <= 10_000; other++) rate.take(`other ${other}`, 1000)
  for (let event = 0; event < 9; event++) t.equal(rate.take('a', 1000), 0)
  t.equal(rate.take('a', 1000), 100, 'nobody is forgiven because many others publish')
})

t.test('what an event cost is taken afterwards, and the next one waits for it', async (t) => {
  const rate = createPublishRate(10)
  t.equal(rate.take('a', 0), 0)
  rate.charge('a', 12, 0)
  for (let event = 0; event < 7; event++) t.equal(rate.take('a', 0), 0)
  t.equal(rate.take('a', 0), 100, '20 are spent')
  rate.charge('a', 1_000_000, 0)
  t.equal(rate.take('a', 0), 2000, 'an event costs at most a full bucket')
  t.equal(rate.take('a', 2000), 0)
  t.equal(rate.take('b', 0), 0)
  const free = createPublishRate(0)
  free.charge('a', 1000, 0)
  t.equal(free.take('a', 0), 0)
})

t.test('all connections of a credential wait in one line, and who is gone costs nothing', async (t) => {
  // The limit gives one token back per 250 ms. The first connection must wait for four tokens.
  const rate = createPublishRate(4)
  for (let event = 0; event < 8; event++) rate.take('a', performance.now())
  rate.charge('a', 3, performance.now())
  const resumed: string[] = []
  const alive = setInterval(() => undefined, 1000) // The timers of the limit do not keep the process alive.
  t.teardown(() => clearInterval(alive))
  await new Promise<void>((resolve) => {
    const enter = (name: string, isOpen: boolean) =>
      rate.enter('a', () => {
        resumed.push(name)
        if (name === 'last') resolve()
        return isOpen
      })
    t.equal(enter('first', true), false)
    for (let gone = 0; gone < 1000; gone++) enter('gone', false)
    t.equal(enter('last', true), false)
    t.equal(
      rate.enter('b', () => true),
      true,
      'another credential goes on',
    )
  })
  t.equal(resumed[0], 'first')
  t.equal(resumed.length, 1002)
})

t.test('behind a cheap event the next goes on at once, behind an expensive one a turn later', async (t) => {
  const alive = setInterval(() => undefined, 1000) // The timers of the limit do not keep the process alive.
  t.teardown(() => clearInterval(alive))
  let now = performance.now()
  t.capture(performance, 'now', () => now)
  for (const [cost, decides, turns] of [
    [0, 'at once', 1],
    [0.5, 'at once', 5],
    // Behind a SUBSCRIBE.
    [0, 'later', 1],
    [0.5, 'later', 5],
    // For a connection that ends now.
    [0, 'never', 5],
  ] as const) {
    const rate = createPublishRate(20)
    for (let event = 0; event < 40; event++) rate.take('a', performance.now())
    let turn = 0
    const resumedIn = new Set<number>()
    await new Promise<void>((resolve) => {
      for (let event = 1; event <= 5; event++) {
        rate.enter('a', () => {
          resumedIn.add(turn)
          const charge = () => rate.charge('a', cost, performance.now())
          if (decides === 'at once') charge()
          if (decides === 'later') process.nextTick(charge)
          if (event === 5) resolve()
          return true
        })
      }
      // Before the limit looks again, there are tokens for all of them.
      now += 1_000
      const count = () => {
        turn++
        if (resumedIn.size < turns) setImmediate(count)
      }
      setImmediate(count)
    })
    t.equal(resumedIn.size, turns, `cost ${cost}, decided ${decides}`)
  }
})

t.test('a debt stays one for as long as it takes, not for a window of time', async (t) => {
  const rate = createPublishRate(10)
  let allowed = 0
  for (let ms = 0; ms < 8_000; ms += 100) {
    if (rate.take('a', ms) > 0) continue
    rate.charge('a', 19, ms)
    allowed += 20
  }
  t.ok(allowed <= 20 + 10 * 8 + 20, `${allowed} tokens in 8 seconds at 10 a second`)
})

t.test('an event costs one token, or one for each 64 KiB over all its livestreams', async (t) => {
  const table: [bytes: number, livestreams: number, cost: number][] = [
    [0, 0, 1],
    [500, 1, 1],
    [5_000, 10, 1],
    [64 * 1024, 1, 1],
    [128 * 1024, 1, 2],
    [32 * 1024, 4, 2],
    [400 * 1024, 0, 6.25],
    [400 * 1024, 20, 125],
    [40 * 1024, 200, 125],
  ]
  for (const [bytes, livestreams, cost] of table) {
    t.equal(costOf(bytes, livestreams), cost, `${bytes} bytes for ${livestreams}`)
  }
})
