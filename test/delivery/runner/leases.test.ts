import { join } from 'node:path'
import pino from 'pino'
import type { Test } from 'tap'
import { createLeases } from '../../../delivery/runner/leases.ts'
import { createCalls } from '../../../store/nodes/calls.ts'
import { createMembership } from '../../../store/nodes/membership.ts'
import { onRedis } from '../../redis-server.ts'
import { openRedis } from '../../store/open-redis.ts'

onRedis('a free queue that two nodes want at once', async (t, { url }) => {
  const [a, b] = [await openNode(t, url, 'a'), await openNode(t, url, 'b')]
  const queues = Array.from({ length: 40 }, (_, index) => `queue ${index}`)
  const taken = await Promise.all(
    queues.map(async (queue) => {
      const [byA, byB] = await Promise.all([a.leases.take(queue), b.leases.take(queue)])
      return { queue, byA, byB }
    }),
  )
  const twice = taken.filter(({ byA, byB }) => byA && byB).map(({ queue }) => queue)
  t.same(twice, [], 'one of them has it')
  for (const { queue, byA } of taken) {
    const stored = await a.store.get(`work-lease/${encodeURIComponent(queue)}`)
    if (!twice.includes(queue)) t.equal(String(stored), byA ? a.self : b.self, 'and the store says which')
  }
})

onRedis('lanes of a queue that want its lease at once all have it', async (t, { url }) => {
  const [a, b] = [await openNode(t, url, 'a'), await openNode(t, url, 'b')]
  const lanes = () => Promise.all(Array.from({ length: 8 }, () => a.leases.take('queue')))
  t.same(await lanes(), Array(8).fill(true))
  await a.leases.release('queue')
  await b.store.catchUp()
  t.equal(await b.leases.take('queue'), true)
  await a.store.catchUp()
  t.same(await lanes(), Array(8).fill(false))
})

onRedis('a lease that is being released is held no more', async (t, { url }) => {
  const [a, b] = [await openNode(t, url, 'a'), await openNode(t, url, 'b')]
  t.equal(await a.leases.take('queue'), true)
  const released = a.leases.release('queue')
  const again = a.leases.take('queue')
  for (let turn = 0; turn < 10; turn++) await Promise.resolve()
  t.equal(a.leases.holds('queue'), false, 'another node may have taken it already')
  await released
  t.equal(await again, true, 'what is wanted meanwhile is taken anew')
  await b.store.catchUp()
  t.equal((await b.store.get('work-lease/queue'))?.toString(), a.self)
})

onRedis('a lease whose release had no answer is released all the same', async (t, { url }) => {
  const [a, b] = [await openNode(t, url, 'a'), await openNode(t, url, 'b')]
  const { commit } = a.store
  for (const isStored of [true, false]) {
    t.equal(await a.leases.take('queue'), true)
    a.store.commit = async (...given) => {
      if (isStored) await commit(...given)
      throw new Error('no answer')
    }
    await t.rejects(a.leases.release('queue'), { message: 'no answer' })
    t.equal(a.leases.holds('queue'), false)
    a.store.commit = commit
    await a.leases.release('queue')
    await b.store.catchUp()
    t.equal(await b.store.get('work-lease/queue'), undefined, isStored ? 'it was stored' : 'it was not')
  }
})

onRedis('a node that has lost touch with the others holds and takes nothing', async (t, { url }) => {
  const a = await openNode(t, url, 'a')
  t.equal(await a.leases.take('held'), true)
  a.touch.isLost = true
  t.equal(a.leases.holds('held'), false)
  t.equal(await a.leases.take('free'), false)
  t.equal(await a.store.get('work-lease/free'), undefined)
  a.touch.isLost = false
  t.equal(a.leases.holds('held'), true)
})

onRedis('what a node takes for the holder of a queue is read anew', async (t, { url }) => {
  const [a, b] = [await openNode(t, url, 'a'), await openNode(t, url, 'b')]
  t.equal(await b.leases.take('queue'), true)
  t.same([a.leases.holds('queue'), b.leases.holds('queue')], [false, true])
  await a.store.catchUp()
  // Node `a` does not hear of its own commit, and still believes that node `b` holds the lease.
  await a.store.commit([{ del: 'work-lease/queue' }])
  await b.store.catchUp()
  t.equal(await a.leases.take('queue'), false)
  await a.leases.refresh('queue')
  t.equal(await a.leases.take('queue'), true)
})

onRedis('what a gone node leaves behind is removed, if nobody works it off', async (t, { url }) => {
  const [a, b] = [await openNode(t, url, 'a'), await openNode(t, url, 'b')]
  const [gone, left] = [a, b].sort((one) => (one.nodes.isLeader() ? -1 : 1))
  if (!gone || !left) throw new Error('no nodes')
  const stored = async (queue: string) =>
    (await left.store.get(`work-lease/${encodeURIComponent(queue)}`))?.toString()
  t.equal(await gone.leases.take('output:removed:one'), true)
  t.equal(await gone.leases.take('used'), true)
  await left.store.catchUp()
  await left.leases.removeLeft(() => true)
  t.equal(await stored('output:removed:one'), gone.self, 'not before the node is gone')
  const changed = new Promise<void>((resolve) => left.nodes.onChange(resolve))
  await gone.nodes.leave()
  await changed
  await left.leases.removeLeft((lease) => lease !== 'used')
  t.equal(await stored('output:removed:one'), undefined)
  t.equal(await stored('used'), gone.self, 'the next node that works it off takes it over')
  t.equal(await left.leases.take('used'), true)
})

async function openNode(t: Test, url: string, name: string) {
  const store = await openRedis(t, url)
  const idFile = join(t.testdir({}), name)
  const log = pino({ level: 'silent' })
  const nodes = await createMembership({ store, name, idFile, log, onGap: (reason) => t.error(reason) })
  const touch = { isLost: false }
  const leases = await createLeases({
    store,
    nodes: { ...nodes, isInTouch: () => !touch.isLost && nodes.isInTouch() },
    calls: createCalls({ store, nodes }),
    log,
  })
  // Like a busy runner, this node keeps its lease when another node asks for it.
  leases.onFreed(
    () => {},
    () => {},
  )
  await nodes.join()
  t.teardown(() => nodes.leave())
  return { store, leases, nodes, touch, self: nodes.self }
}
