import t, { type Test } from 'tap'
import { workLimits } from '../../delivery/queue/limits.ts'
import { createWorkQueues } from '../../delivery/queue/work-queues.ts'
import type { Message } from '../../event/message.ts'
import { appendChanges } from '../../journal/entry.ts'
import { openJournal } from '../../journal/journal.ts'
import { createOnlyNode, type Nodes } from '../../store/nodes/nodes.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { createSharedSpace, type SharedSpace, settled } from '../shared-store.ts'

/** The queues of one node. The node with slot 0 is the leader and works off all queues. */
async function openNode(t: Test, space: SharedSpace, slot: number) {
  const store = space.openFollowed(t)
  const nodes: Nodes = {
    ...createOnlyNode('test'),
    isShared: true,
    slot: () => slot,
    isLeader: () => slot === 0,
  }
  const journal = await openJournal(store)
  const queues = await createWorkQueues({
    store,
    journal,
    nodes,
    isOwn: () => slot === 0,
    clock: Date.now,
    steadyClock: Date.now,
    limits: { ...workLimits, perQueue: 1_000 },
    metrics: createMetrics(),
  })
  store.start()
  return {
    store,
    journal,
    queues,
    async append(messageId: string): Promise<void> {
      let show: (first: number) => void = () => {}
      const changes = queues.plan({
        messageId,
        once(_scope, make) {
          const work = make()
          show = work.show
          return work.changes
        },
        groups: [{ scope: 'a', content: { nth: 0 }, queues: ['a'], details: {} }],
      })
      const payload = Buffer.from(`payload of ${messageId}`)
      const message: Message = { topic: 'a', payload, qos: 1, queue: { keep: 'latest' } }
      show(await store.commit([...changes, ...appendChanges([message], Date.now())]))
    },
  }
}

t.test('what two nodes replay at once is in the queue once, with its payload', async (t) => {
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
    sent.push(String(await a.queues.payload('a', head)))
    await a.queues.acknowledge('a', head)
  }
  t.same(
    sent.sort(),
    ['1', '2', '3'].map((id) => `payload of ${id}`),
  )
  await settled(a.store, b.store)
  for (const prefix of ['work/', 'work-dead/']) {
    for await (const [key] of a.store.range(prefix)) t.fail(`${key} is left`)
  }
})

t.test('every node knows what is named, whichever of them appended it or is done with it', async (t) => {
  const space = createSharedSpace()
  const [a, b] = [await openNode(t, space, 0), await openNode(t, space, 1)]
  await a.append('1')
  await b.append('2')
  await settled(a.store, b.store)
  for (const { journal } of [a, b]) t.same([1, 2, 3].map(journal.neededByQueues.has), [true, true, false])
  const later = await openNode(t, space, 2)
  t.same([1, 2, 3].map(later.journal.neededByQueues.has), [true, true, false])
  const { head } = a.queues.waiting('a')
  if (head) await a.queues.acknowledge('a', head)
  await a.queues.giveUpAll('a', 'no reason')
  await settled(a.store, b.store)
  for (const { journal } of [a, b]) t.same([1, 2, 3].map(journal.neededByQueues.has), [false, false, false])
})
