import t from 'tap'
import { keyOf, withNumbers } from '../../../store/commit.ts'
import type { Change, Store, Told } from '../../../store/store.ts'
import { createMemoryStore } from '../memory-store.ts'
import { messagesAt, openQueues } from '../open-queues.ts'

/*
 * Another node changes a queue between this node's look at the queue and this node's commit.
 */

/** The queues of two nodes on one store. The other node receives each commit before the commit resolves. */
async function openTwo() {
  const memory = createMemoryStore()
  const listeners: { node: number; place: string; listener: (change: Told) => void }[] = []
  let meanwhile: ((changes: readonly Change[]) => Promise<void>) | undefined
  const storeOf = (node: number): Store => ({
    ...memory.store,
    isShared: true,
    onOthers: (place, listener) => void listeners.push({ node, place, listener }),
    async commit(changes) {
      const change = meanwhile
      meanwhile = undefined
      await change?.(changes)
      const first = await memory.store.commit(changes)
      for (const change of withNumbers(changes, first).filter((one) => !('check' in one))) {
        for (const { node: other, place, listener } of listeners)
          if (other !== node && keyOf(change).startsWith(place)) listener(toldOf(change))
      }
      return first
    },
  })
  const open = (slot: number) => openQueues({ memory: { ...memory, store: storeOf(slot) }, slot })
  const [one, two] = [await open(1), await open(2)]
  return {
    memory,
    one,
    two,
    /** Runs `change` once, before the next commit of either node. */
    before(change: (changes: readonly Change[]) => Promise<void>): void {
      meanwhile = change
    },
  }
}

function toldOf(change: Change): Told {
  if ('put' in change) return { put: change.put, value: Buffer.from(change.value) }
  return { del: keyOf(change) }
}

t.test('what is given up while its queue is removed leaves nothing', async (t) => {
  const { memory, one, two, before } = await openTwo()
  await one.append('a', 'hook')
  before(() => two.queues.drop('hook'))
  await one.queues.giveUpAll('hook', 'it waited too long')
  t.same([memory.keys('work/'), memory.keys('work-dead/')], [[], []])
  t.same(one.queues.deadLetters('hook'), [])
})

t.test('a queue that is removed while items are given up leaves nothing', async (t) => {
  const { memory, one, two, before } = await openTwo()
  await one.append('a', 'hook')
  before(async () => void (await one.queues.giveUpAll('hook', 'it waited too long')))
  await two.queues.drop('hook')
  t.same([memory.keys('work/'), memory.keys('work-dead/')], [[], []])
  t.same(two.queues.names(), [])
})

t.test('two nodes that repeat the same at once add it once', async (t) => {
  const { memory, one, two } = await openTwo()
  for (const id of ['a', 'b', 'c']) await one.append(id, 'other')
  const repeat = (node: typeof one) => node.queues.repeat('hook', messagesAt(1, 2, 3), async () => undefined)
  const counts = await Promise.all([repeat(one), repeat(two)])
  t.equal(memory.keys('work/hook/').length, 3)
  t.equal(counts[0] + counts[1], 3)
  t.equal(one.queues.lengthOf('hook').pending, 3)
})
