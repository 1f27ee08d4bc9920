import t, { type Test } from 'tap'
import { workLimits } from '../../delivery/queue/limits.ts'
import { createWorkQueues } from '../../delivery/queue/work-queues.ts'
import { createOnlyNode, type Nodes } from '../../store/nodes/nodes.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { createSharedSpace, type SharedSpace, settled } from '../shared-store.ts'

/** The queues of one of several nodes. The first looks after all of them. */
async function openNode(t: Test, space: SharedSpace, slot: number) {
  const store = space.openWatched(t)
  const nodes: Nodes = {
    ...createOnlyNode('test'),
    isShared: true,
    slot: () => slot,
    isLeader: () => slot === 0,
  }
  const queues = await createWorkQueues({
    ...{ store, nodes, isOwn: () => slot === 0, clock: Date.now, steadyClock: Date.now },
    ...{ limits: { ...workLimits, perQueue: 1_000 }, metrics: createMetrics() },
  })
  store.start()
  return {
    store,
    queues,
    async append(messageId: string): Promise<void> {
      let show = () => {}
      const changes = queues.plan({
        ...{ messageId, body: Buffer.from(`body of ${messageId}`) },
        once(_scope, make) {
          const work = make()
          show = work.show
          return work.changes
        },
        groups: [{ scope: 'a', items: [{ queue: 'a', details: {} }] }],
      })
      await store.commit(changes)
      show()
    },
  }
}

t.test('what two nodes replay at once is in the queue once, with its body', async (t) => {
  const space = createSharedSpace()
  const [a, b] = [await openNode(t, space, 0), await openNode(t, space, 1)]
  for (const id of ['1', '2', '3']) await a.append(id)
  await a.queues.giveUpAll('a', 'no reason')
  await settled(a.store, b.store)
  const [all, one] = await Promise.all([a.queues.replay('a'), b.queues.replay('a', '2')])
  t.equal(all + one, 3)
  await settled(a.store, b.store)
  for (const { queues } of [a, b]) t.match(queues.lengthOf('a'), { pending: 3, deadLetters: 0 })
  const sent: string[] = []
  for (;;) {
    const { head } = a.queues.waiting('a')
    if (!head) break
    sent.push(String(await a.queues.body(head)))
    await a.queues.acknowledge('a', head)
  }
  t.same(
    sent.sort(),
    ['1', '2', '3'].map((id) => `body of ${id}`),
  )
  await settled(a.store, b.store)
  for (const { queues } of [a, b]) await queues.tidy(() => false)
  for (const prefix of ['work/', 'work-dead/', 'work-body/']) {
    for await (const [key] of a.store.range(prefix)) t.fail(`${key} is left`)
  }
})
