import { join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import { createLeases } from '../../../delivery/runner/leases.ts'
import { createCalls } from '../../../store/nodes/calls.ts'
import { createMembership } from '../../../store/nodes/membership.ts'
import { startRedis, withoutRedis } from '../../redis-server.ts'
import { openRedis } from '../../store/open-redis.ts'

t.test('a free queue that two nodes want at once', { skip: withoutRedis }, async (t) => {
  const { url } = await startRedis(t)
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

t.test('what a node takes for the holder of a queue is read anew', { skip: withoutRedis }, async (t) => {
  const { url } = await startRedis(t)
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

async function openNode(t: Test, url: string, name: string) {
  const store = await openRedis(t, url)
  const idFile = join(t.testdir({}), name)
  const log = pino({ level: 'silent' })
  const nodes = await createMembership({ store, name, idFile, log, onGap: (reason) => t.error(reason) })
  const leases = await createLeases({ store, nodes, calls: createCalls({ store, nodes }), log })
  // Like a busy runner, this node keeps its lease when another node asks for it.
  leases.onFreed(
    () => {},
    () => {},
  )
  await nodes.join()
  t.teardown(() => nodes.leave())
  return { store, leases, self: nodes.self }
}
