import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createLifecycle } from '../../../bridge-https/lifecycle/lifecycle.ts'
import { createTraffic } from '../../../bridge-https/lifecycle/traffic.ts'
import { openEmbeddedStore } from '../../../store/embedded.ts'
import { words } from '../../words.ts'

const dayMs = 24 * 3600 * 1000
const link = 'https://hub.example/migration'

async function start(t: Test, stage: 'test' | 'prod' = 'prod') {
  const store = await openEmbeddedStore(join(t.testdir(), 'store'))
  const time = { now: Date.parse('2026-03-01T12:00:00Z') }
  const clock = () => time.now
  const onStoreFailure = () => t.fail('not stored')
  const traffic = await createTraffic({ store, clock, onStoreFailure })
  const lifecycle = await createLifecycle({ store, traffic, clock, stage })
  t.teardown(async () => {
    await traffic.close()
    await store.close()
  })
  return {
    store,
    time,
    clock,
    traffic,
    lifecycle,
    reopen: () => createTraffic({ store, clock, onStoreFailure }),
  }
}

t.test('a track goes only after its sunset and seven days without a request', async (t) => {
  const { lifecycle, time } = await start(t)
  t.match(lifecycle.status(), [
    { track: 'push', state: 'live', announcedAt: null, sunset: null, requests: 0, traffic: [] },
    { track: 'publish', state: 'live' },
  ])
  t.match(await lifecycle.retire('push'), { error: /announced first/ })
  lifecycle.count('push', 'GET /topics')
  await lifecycle.announce({ track: 'push', sunset: '2026-03-03', link })
  t.match(await lifecycle.retire('push'), { error: /its sunset is 2026-03-03.*it had 1 requests/ })
  time.now += 3 * dayMs
  t.match(await lifecycle.retire('push'), {
    error: /^push stays: it had 1 requests.*2026-03-01 GET \/topics: 1/,
  })
  time.now += 4 * dayMs
  t.match(await lifecycle.retire('push'), { error: /it had 1/ }, 'seven days ago is not longer than that')
  lifecycle.count('publish', 'POST /auth/login')
  time.now += dayMs
  t.match(await lifecycle.retire('push'), {
    state: 'gone',
    retiredAt: '2026-03-09T12:00:00.000Z',
    requests: 0,
  })
  t.equal(lifecycle.of('push').state, 'gone')
  t.equal(lifecycle.of('publish').state, 'live')
})

t.test('a second announcement changes the date, and not since when there is notice', async (t) => {
  const { lifecycle, time } = await start(t)
  await lifecycle.announce({ track: 'publish', sunset: '2026-12-31T23:00:00+01:00', link })
  time.now += dayMs
  const other = 'https://hub.example/later'
  t.match(await lifecycle.announce({ track: 'publish', sunset: '2027-06-30', link: other }), {
    state: 'deprecated',
    announcedAt: '2026-03-01T12:00:00.000Z',
    sunset: '2027-06-30T00:00:00.000Z',
    link: other,
  })
  t.match(await lifecycle.announce({ track: 'publish', sunset: '2026-03-02', link }), { error: /future/ })
})

t.test('a sunset is of the years 2000 to 9998, in UTC', async (t) => {
  const { lifecycle } = await start(t, 'test')
  const announce = (sunset: string) => lifecycle.announce({ track: 'publish', sunset, link })
  for (const sunset of words(`
    9999-12-31T23:59:59-23:59 9998-12-31T23:59:59-00:01 9999-01-01 1999-12-31 2000-01-01T00:00:00+00:01
    0000-01-01
  `)) {
    t.match(
      await announce(sunset),
      { error: /^sunset must be a date .* of the years 2000 to 9998, not "/ },
      sunset,
    )
  }
  t.equal(lifecycle.of('publish').state, 'live')
  for (const sunset of ['2000-01-01', '9998-12-31T23:59:59Z', '1999-12-31T23:59:00-00:01']) {
    t.match(await announce(sunset), { state: 'deprecated', sunset: /^(2000|9998)-/ }, sunset)
  }
})

t.test('the first request of a day survives a crash, the others a stop, old days go', async (t) => {
  const { traffic, time, reopen, store } = await start(t)
  traffic.count('push', 'GET /topics')
  await store.commit([])
  const stored = async () => {
    const again = await reopen()
    const counters = again.of('push', 7)
    await again.close()
    return counters.map(({ day, requests }) => `${day} ${requests}`)
  }
  // Commits are applied in order: after this commit, the counter is stored, too.
  await store.commit([{ put: 'x/y', value: '' }])
  t.same(await stored(), ['2026-03-01 1'])
  traffic.count('push', 'GET /topics')
  await traffic.close()
  t.same(await stored(), ['2026-03-01 2'])
  time.now += 401 * dayMs
  t.same(await stored(), [])
  t.equal(await store.get(`traffic/${encodeURIComponent('2026-03-01 push GET /topics')}`), undefined)
})
