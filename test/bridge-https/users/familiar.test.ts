import t from 'tap'
import { createFamiliar } from '../../../bridge-https/users/familiar.ts'
import { originOf } from '../../../listener/origin.ts'
import { createSharedSpace, settled } from '../../shared-store.ts'

const dayMs = 86_400_000
const here = originOf('192.0.2.1')
const neighbour = originOf('192.0.2.2')
const elsewhere = originOf('2001:db8:1:2::1')

const [ours, theirs] = ['account-a', 'account-b'] as const

t.test('a place is known on every node, and after a restart', async (t) => {
  const space = createSharedSpace()
  const [a, b] = [space.openFollowed(t), space.openFollowed(t)]
  const onA = await createFamiliar({ store: a, clock: Date.now })
  const onB = await createFamiliar({ store: b, clock: Date.now })
  a.start()
  b.start()
  t.same([onA.of(here), onA.of(neighbour)], ['strange', 'strange'])
  await onA.remember(ours, here)
  await onA.remember(ours, elsewhere)
  await settled(b)
  const started = await createFamiliar({ store: space.openFollowed(t), clock: Date.now })
  for (const node of [onA, onB, started]) {
    t.same([node.of(here), node.of(neighbour)], ['address', 'network'])
    t.equal(node.of(originOf('2001:db8:1:2:ffff::9')), 'address', 'all of an IPv6 /64 is one address')
    t.equal(node.of(originOf('2001:db8:1:3::1')), 'network', 'all of a /48 is one network')
    t.equal(node.of(originOf('2001:db8:2:2::1')), 'strange')
    t.same([node.knows(ours, here), node.knows(ours, neighbour)], [true, true])
    t.same([node.knows(theirs, here), node.knows(theirs, neighbour)], [false, false])
  }
})

t.test('places are bounded: the oldest go, and those of long ago', async (t) => {
  const time = { now: 0 }
  const space = createSharedSpace()
  const store = space.openFollowed(t)
  const familiar = await createFamiliar({ store, clock: () => time.now, limits: { all: 3, perAccount: 2 } })
  store.start()
  const places = [1, 2, 3, 4, 5].map((number) => originOf(`198.51.${number}.1`))
  for (const [index, place] of places.entries()) {
    time.now += dayMs
    await familiar.remember(`account-${index}`, place)
  }
  t.same(
    places.map((place) => familiar.of(place)),
    ['strange', 'strange', 'address', 'address', 'address'],
  )
  time.now += dayMs
  await familiar.remember('account-2', originOf('198.51.3.1'))
  await familiar.remember(ours, here)
  const started = await createFamiliar({ store: space.openFollowed(t), clock: () => time.now })
  for (const node of [familiar, started]) {
    t.same(
      places.map((place) => node.of(place)),
      ['strange', 'strange', 'address', 'strange', 'address'],
      'a place that is used again is not the oldest',
    )
  }
  time.now += 90 * dayMs
  await familiar.remember(ours, elsewhere)
  t.same(
    [...places, here, elsewhere].map((place) => familiar.of(place)),
    ['strange', 'strange', 'strange', 'strange', 'strange', 'strange', 'address'],
  )
  t.equal(familiar.knows(ours, here), false)
})

t.test('one account with many places pushes only its own out', async (t) => {
  const store = createSharedSpace().openFollowed(t)
  const familiar = await createFamiliar({ store, clock: Date.now, limits: { all: 10, perAccount: 2 } })
  store.start()
  await familiar.remember(ours, here)
  const places = Array.from({ length: 20 }, (_, index) => originOf(`198.51.${index}.1`))
  for (const place of places) await familiar.remember(theirs, place)
  t.equal(familiar.of(here), 'address')
  t.equal(familiar.knows(ours, here), true)
  t.same(
    places.map((place) => familiar.knows(theirs, place)),
    places.map((_, index) => index >= 18),
  )
})

t.test('a place that is used every day is written once a day', async (t) => {
  const time = { now: dayMs }
  const store = createSharedSpace().openFollowed(t)
  let commits = 0
  const counting = {
    ...store,
    commit: (...args: Parameters<typeof store.commit>) => {
      commits++
      return store.commit(...args)
    },
  }
  const familiar = await createFamiliar({ store: counting, clock: () => time.now })
  store.start()
  for (let hour = 0; hour < 48; hour++) {
    await familiar.remember(ours, here)
    time.now += dayMs / 24
  }
  t.equal(commits, 2)
})
