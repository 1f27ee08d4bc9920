import t from 'tap'
import { createFamiliar } from '../../../bridge-https/users/familiar.ts'
import { originOf } from '../../../listener/origin.ts'
import { createSharedSpace, settled } from '../../shared-store.ts'

const dayMs = 86_400_000
const here = originOf('192.0.2.1')
const neighbour = originOf('192.0.2.2')
const elsewhere = originOf('2001:db8:1:2::1')

t.test('a place is known on every node, and after a restart', async (t) => {
  const space = createSharedSpace()
  const [a, b] = [space.openWatched(t), space.openWatched(t)]
  const onA = await createFamiliar({ store: a, clock: Date.now })
  const onB = await createFamiliar({ store: b, clock: Date.now })
  a.start()
  b.start()
  t.same([onA.of(here), onA.of(neighbour)], ['strange', 'strange'])
  await onA.remember(here)
  await onA.remember(elsewhere)
  await settled(b)
  const started = await createFamiliar({ store: space.openWatched(t), clock: Date.now })
  for (const node of [onA, onB, started]) {
    t.same([node.of(here), node.of(neighbour)], ['address', 'network'])
    t.equal(node.of(originOf('2001:db8:1:2:ffff::9')), 'address', 'all of an IPv6 network is one')
    t.equal(node.of(originOf('2001:db8:1:3::1')), 'strange')
  }
})

t.test('places are bounded: the oldest go, and those of long ago', async (t) => {
  const time = { now: 0 }
  const store = createSharedSpace().openWatched(t)
  store.start()
  const familiar = await createFamiliar({ store, clock: () => time.now, limit: 3 })
  const places = [1, 2, 3, 4, 5].map((number) => originOf(`198.51.${number}.1`))
  for (const place of places) {
    time.now += dayMs
    await familiar.remember(place)
  }
  t.same(
    places.map((place) => familiar.of(place)),
    ['strange', 'strange', 'address', 'address', 'address'],
  )
  time.now += 90 * dayMs
  await familiar.remember(here)
  t.same(
    [...places, here].map((place) => familiar.of(place)),
    ['strange', 'strange', 'strange', 'strange', 'strange', 'address'],
  )
})

t.test('a place that is used every day is written once a day', async (t) => {
  const time = { now: dayMs }
  const store = createSharedSpace().openWatched(t)
  store.start()
  let commits = 0
  const counting = {
    ...store,
    commit: (...args: Parameters<typeof store.commit>) => {
      commits++
      return store.commit(...args)
    },
  }
  const familiar = await createFamiliar({ store: counting, clock: () => time.now })
  for (let hour = 0; hour < 48; hour++) {
    await familiar.remember(here)
    time.now += dayMs / 24
  }
  t.equal(commits, 2)
})
