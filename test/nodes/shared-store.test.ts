import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import type { Told } from '../../store/store.ts'
import { createSharedSpace } from '../shared-store.ts'
import { storeSuite } from '../store/suite.ts'

t.test('the store that tests share keeps the contract', async (t) => {
  storeSuite(t, async (t) => {
    const space = createSharedSpace()
    let store = space.open()
    t.teardown(() => store.close())
    return {
      store,
      async reopen() {
        await store.close()
        store = space.open()
        return store
      },
    }
  })
})

t.test('what others commit since the store was opened is told in commit order, once', async (t) => {
  const space = createSharedSpace()
  const [writer, reader] = [space.open(), space.open()]
  await writer.commit([{ put: 'k/1', value: 'a' }])
  const told: Told[] = []
  reader.follow((changes) => told.push(...changes), t.error)
  await writer.commit([{ put: 'k/1', value: 'b', order: { time: 2, horizon: 9 } }])
  await writer.commit([
    { put: 'k/1', value: 'older', order: { time: 1, horizon: 9 } },
    { tell: 'word', value: 'x' },
    { del: 'k/1' },
  ])
  await reader.commit([{ put: 'k/2', value: 'own' }])
  t.strictSame(told, [
    { put: 'k/1', value: Buffer.from('a') },
    { put: 'k/1', value: Buffer.from('b') },
    { tell: 'word', value: Buffer.from('x') },
    { del: 'k/1' },
  ])
})

t.test('the memory of every node ends as the store', async (t) => {
  const space = createSharedSpace()
  const nodes = [1, 2, 3].map(() => {
    const store = space.open()
    const memory = new Map<string, string>()
    let count = 0
    store.follow((changes) => {
      for (const change of changes) if ('put' in change) memory.set(change.put, change.value.toString())
      count += changes.length
    }, t.error)
    return { store, memory, count: () => count }
  })
  const rounds = 100
  await Promise.all(
    nodes.flatMap(({ store, memory }, node) =>
      Array.from({ length: rounds }, async (_, round) => {
        for (let turn = 0; turn < round % 7; turn++) await nextTurn()
        const [key, value] = [`k/${round % 4}`, `${node}/${round}`]
        await store.commit([{ put: key, value }])
        memory.set(key, value)
      }),
    ),
  )
  for (const { count } of nodes) while (count() < 2 * rounds) await nextTurn()
  for (const { store, memory } of nodes) {
    for (const [key, value] of memory) t.equal((await store.get(key))?.toString(), value)
    await store.close()
  }
})
