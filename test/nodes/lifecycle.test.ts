import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createLifecycle } from '../../bridge-https/lifecycle/lifecycle.ts'
import { createTraffic } from '../../bridge-https/lifecycle/traffic.ts'
import { createSharedSpace, type SharedSpace, settled } from '../shared-store.ts'

const dayMs = 24 * 3600 * 1000
const announcement = { track: 'push' as const, sunset: '2026-03-02', link: 'https://hub.example/migration' }

function createTime() {
  const time = { now: Date.parse('2026-03-01T12:00:00Z') }
  return { time, clock: () => time.now }
}

async function openNode(t: Test, space: SharedSpace, clock: () => number, first: number) {
  const store = space.openFollowed(t)
  let slot = first
  const traffic = await createTraffic({ store, clock, onStoreFailure() {}, nodes: { slot: () => slot } })
  const lifecycle = await createLifecycle({ store, traffic, clock, stage: 'test' })
  store.start()
  t.teardown(traffic.close)
  return {
    store,
    traffic,
    lifecycle,
    takeSlot(next: number): void {
      slot = next
    },
    /** The number of requests that this node knows of, today and on the last 7 days. */
    requests: () => traffic.of('push', 7).reduce((sum, { requests }) => sum + requests, 0),
    count(times: number): void {
      for (let time = 0; time < times; time++) traffic.count('push', 'GET /topics')
    },
  }
}

async function openNodes(t: Test) {
  const { time, clock } = createTime()
  const space = createSharedSpace()
  const open = (slot: number) => openNode(t, space, clock, slot)
  return { time, open, a: await open(0), b: await open(1) }
}

t.test('what is announced and retired on one node counts on all', async (t) => {
  const { a, b, time } = await openNodes(t)
  await a.lifecycle.announce(announcement)
  await settled(b.store)
  t.match(b.lifecycle.of('push'), { state: 'deprecated', link: announcement.link })
  time.now += dayMs
  t.match(await b.lifecycle.retire('push'), { state: 'gone' })
  await settled(a.store)
  t.match(a.lifecycle.of('push'), { state: 'gone' })
  t.match(await a.lifecycle.announce(announcement), { error: /gone/ })
})

t.test('a track announced anew and retired at once on two nodes ends the same on both', async (t) => {
  const { a, b, time } = await openNodes(t)
  await a.lifecycle.announce(announcement)
  await settled(b.store)
  time.now += dayMs
  await Promise.all([b.lifecycle.retire('push'), a.lifecycle.announce(announcement)])
  await settled(a.store, b.store)
  t.match(a.lifecycle.of('push'), { state: 'gone' })
  t.match(b.lifecycle.of('push'), { state: 'gone' })
})

t.test('a request on any node keeps a track', async (t) => {
  const { a, b, time } = await openNodes(t)
  await a.lifecycle.announce(announcement)
  b.traffic.count('push', 'GET /topics')
  time.now += dayMs
  await settled(b.store, a.store)
  t.match(await a.lifecycle.retire('push'), { error: /it had 1 requests/ })
})

t.test('requests are summed over nodes, and over those that had a slot before', async (t) => {
  const { a, b, open } = await openNodes(t)
  a.count(3)
  b.count(4)
  await Promise.all([a.traffic.close(), b.traffic.close()])
  await settled(a.store, b.store)
  t.strictSame(a.traffic.of('push', 7), [
    { track: 'push', route: 'GET /topics', day: '2026-03-01', requests: 7 },
  ])
  t.equal(b.requests(), 7)
  const c = await open(1)
  c.count(2)
  t.equal(c.requests(), 9)
  await c.traffic.close()
  t.equal((await open(5)).requests(), 9)
  let stored = 0
  for await (const _ of a.store.range('traffic/')) stored++
  t.equal(stored, 2, 'one counter per slot, however many nodes there were')
})

t.test('a node that got another slot goes on counting', async (t) => {
  const { a, b, open } = await openNodes(t)
  b.count(4)
  await b.traffic.close()
  b.store.cut()
  b.count(3)
  const c = await open(1)
  c.count(1)
  await c.traffic.close()
  b.store.restore()
  b.takeSlot(2)
  b.count(2)
  await b.traffic.close()
  await settled(b.store, c.store)
  c.count(1)
  await c.traffic.close()
  await settled(a.store, b.store)
  for (const { requests } of [a, b, c]) {
    t.ok(requests() >= 10 && requests() <= 11, 'at most what was counted while two had the slot is lost')
  }
})

t.test('a counter stored without an answer is not counted twice', async (t) => {
  const { a, b } = await openNodes(t)
  a.count(1)
  await settled(a.store)
  a.count(4)
  a.store.cut('applied')
  await a.traffic.close()
  a.store.restore()
  await settled(b.store)
  t.equal(b.requests(), 5)
  for (let turn = 0; turn < 50; turn++) await nextTurn()
  await a.traffic.close()
  await settled(b.store)
  t.equal(a.requests(), 5)
  t.equal(b.requests(), 5)
})
