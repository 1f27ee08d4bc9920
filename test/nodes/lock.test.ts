import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createLock, type InLock } from '../../store/lock.ts'
import { startRedis, withoutRedis } from '../redis-server.ts'
import { createSharedSpace, settled } from '../shared-store.ts'
import { openRedis } from '../store/open-redis.ts'

function openNodes(t: Test, count: number, patience?: number) {
  const space = createSharedSpace()
  return Promise.all(
    Array.from({ length: count }, async () => {
      const store = space.openFollowed(t)
      const inLock = await createLock(store, 'counter', patience)
      store.start()
      return { store, inLock }
    }),
  )
}

t.test('changes of several nodes never overlap, and each finds what the one before left', async (t) => {
  const nodes = await openNodes(t, 3)
  let running = 0
  let counter = 0
  const change = (inLock: InLock) =>
    inLock(async () => {
      t.equal(++running, 1)
      const seen = counter
      for (let turn = 0; turn < 5; turn++) await nextTurn()
      counter = seen + 1
      running--
    })
  await Promise.all(nodes.flatMap(({ inLock }) => Array.from({ length: 20 }, () => change(inLock))))
  t.equal(counter, 60)
})

t.test('the result is handed on, and a failure holds nobody up', async (t) => {
  const [a, b] = await openNodes(t, 2)
  t.equal(await a?.inLock(async () => 'done'), 'done')
  const failing = a?.inLock(async () => {
    throw new Error('cannot')
  })
  const [, next] = await Promise.all([
    t.rejects(failing ?? Promise.resolve(), { message: 'cannot' }),
    b?.inLock(async () => 'next'),
  ])
  t.equal(next, 'next')
})

t.test('a node that died in its turn holds the others up for a while only', async (t) => {
  const [a, b, c] = await openNodes(t, 3, 50)
  if (!a || !b || !c) return
  let reached = () => {}
  const inside = new Promise<void>((resolve) => {
    reached = resolve
  })
  void a.inLock(() => {
    reached()
    return new Promise(() => {})
  })
  await inside
  a.store.cut()
  // A node has connections, which keep its process alive: waiting for a lock does not.
  const alive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(alive))
  const order: string[] = []
  await Promise.all([b, c].map(({ inLock }, index) => inLock(async () => void order.push(`${index}`))))
  t.equal(order.length, 2)
})

t.test('a turn that cannot be claimed is refused, and nobody waits for it', async (t) => {
  for (const fate of ['lost', 'applied'] as const) {
    const [a, b] = await openNodes(t, 2, 60_000)
    if (!a || !b) return
    a.store.cut(fate)
    await t.rejects(a.inLock(async () => t.fail('not its turn')))
    t.equal(await b.inLock(async () => fate), fate)
    a.store.restore()
    await settled(a.store)
    t.equal(await a.inLock(async () => fate), fate)
  }
})

t.test('a node that still loads gets its turn without asking again and again', async (t) => {
  const space = createSharedSpace()
  const [loading, other] = [space.openFollowed(t), space.openFollowed(t)]
  const inOther = await createLock(other, 'counter')
  other.start()
  let commits = 0
  const counted: typeof loading.commit = (changes) => {
    commits++
    return loading.commit(changes)
  }
  const inLock = await createLock({ ...loading, commit: counted }, 'counter')
  await inOther(async () => undefined)
  await settled(other)
  t.equal(await inLock(async () => 'done'), 'done', 'it is not told of what others commit yet')
  t.ok(commits <= 3, `${commits} commits`)
})

t.test(
  'a change that takes longer than the others wait either counts or fails',
  { skip: withoutRedis },
  async (t) => {
    const patience = 50
    const { url } = await startRedis(t)
    const nodes = await Promise.all(
      ['a', 'b'].map(async () => {
        const store = await openRedis(t, url)
        const inLock = await createLock(store, 'counter', patience)
        store.startFollowing((reason) => t.error(reason))
        return { store, inLock }
      }),
    )
    const slowly = ({ store, inLock }: (typeof nodes)[number]) =>
      inLock(async (held) => {
        const seen = Number((await store.get('count/it')) ?? 0)
        await delay(4 * patience)
        await store.commit([{ put: 'count/it', value: String(seen + 1) }, ...held])
      })
    const outcomes = await Promise.allSettled([...nodes, ...nodes].map(slowly))
    const done = outcomes.filter(({ status }) => status === 'fulfilled').length
    t.equal(Number(await nodes[0]?.store.get('count/it')), done, 'what was said to be done is done')
  },
)
