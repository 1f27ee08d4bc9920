import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createCollection } from '../../store/collection.ts'
import { createSharedSpace, settled } from '../shared-store.ts'

interface Station {
  title: string
}

const first = { title: 'first' }
const second = { title: 'second' }

async function openNodes(t: Test) {
  const space = createSharedSpace()
  const open = async () => {
    const store = space.openFollowed(t)
    const stations = await createCollection<Station>(store, { prefix: 'station/' })
    const changes: unknown[] = []
    stations.onChanged((...change) => changes.push([...change, stations.get(change[0])]))
    store.start()
    return { store, stations, changes }
  }
  return { space, a: await open(), b: await open() }
}

t.test('a collection follows what other nodes change', async (t) => {
  const { a, b } = await openNodes(t)
  for (const key of ['kw1', 'ä/🎵 %']) {
    await a.stations.put(key, first)
    await a.stations.put(key, second)
    await settled(b.store)
    t.strictSame(b.stations.get(key), second)
    await a.stations.delete(key)
    await settled(b.store)
    t.equal(b.stations.get(key), undefined)
    t.strictSame(b.changes.splice(0), [
      [key, undefined, first, first],
      [key, first, second, second],
      [key, second, undefined, undefined],
    ])
  }
  t.strictSame(a.changes, [], 'of its own changes a node knows')
})

t.test('of concurrent changes all nodes keep the same', async (t) => {
  const { a, b } = await openNodes(t)
  for (let round = 0; round < 30; round++) {
    await Promise.all(
      [a, b].flatMap(({ stations }, node) =>
        Array.from({ length: 3 }, async (_, index) => {
          for (let turn = 0; turn < (round * (index + node)) % 5; turn++) await nextTurn()
          if (round % 4 === 3 && index === 1) await stations.delete('kw1')
          else await stations.put('kw1', { title: `${round} ${node} ${index}` })
        }),
      ),
    )
    await settled(a.store, b.store)
    const stored = await a.store.get('station/kw1')
    const expected = stored && JSON.parse(stored.toString())
    t.strictSame(a.stations.get('kw1'), expected)
    t.strictSame(b.stations.get('kw1'), expected)
  }
})

t.test('what was applied without an answer is found out', async (t) => {
  const { a, b } = await openNodes(t)
  await a.stations.put('kw1', first)
  a.store.cut('applied')
  await t.rejects(a.stations.put('kw1', second))
  await t.rejects(a.stations.put('kw2', second))
  t.strictSame(a.stations.get('kw1'), first)
  await b.stations.put('kw2', first)
  a.store.restore()
  while (a.changes.length < 2) await nextTurn()
  await settled(a.store)
  t.strictSame(a.stations.get('kw1'), second)
  t.strictSame(a.stations.get('kw2'), first, 'and what came after it stays')
})
