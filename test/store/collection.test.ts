import t from 'tap'
import { createCollection } from '../../store/collection.ts'
import { openStore } from '../open-store.ts'

interface Station {
  title: string
  tags?: string[]
}

t.test('a document is found again, also after loading', async (t) => {
  const store = await openStore(t)
  const stations = await createCollection<Station>(store, { prefix: 'station/' })
  t.equal(stations.size, 0)
  t.equal(stations.get('kw1'), undefined)
  await stations.put('kw1', { title: 'Küstenwelle 1', tags: ['Pop'] })
  await stations.put('kw2', { title: 'Küstenwelle 2' })
  await stations.put('kw1', { title: 'Küstenwelle Eins' })
  for (const collection of [stations, await createCollection<Station>(store, { prefix: 'station/' })]) {
    t.equal(collection.size, 2)
    t.strictSame(collection.get('kw1'), { title: 'Küstenwelle Eins' })
    t.strictSame(
      [...collection.values()].map(({ title }) => title),
      ['Küstenwelle Eins', 'Küstenwelle 2'],
    )
    t.strictSame(
      [...collection.entries()].map(([key]) => key),
      ['kw1', 'kw2'],
    )
  }
})

t.test('keys may hold any characters', async (t) => {
  const store = await openStore(t)
  const keys = ['a/b', '%2F', '', 'ä 🎵', '__proto__', 'constructor', '.', '..', 'x\0y']
  const stations = await createCollection<Station>(store, { prefix: 'station/' })
  for (const key of keys) await stations.put(key, { title: key })
  const loaded = await createCollection<Station>(store, { prefix: 'station/' })
  t.equal(loaded.size, keys.length)
  for (const key of keys) t.strictSame(loaded.get(key), { title: key }, JSON.stringify(key))
})

t.test('collections do not see each other', async (t) => {
  const store = await openStore(t)
  const names = ['a', 'a0', 'ab', 'A']
  for (const name of names)
    await (await createCollection<Station>(store, { prefix: `${name}/` })).put('x', { title: name })
  for (const name of names) {
    const collection = await createCollection<Station>(store, { prefix: `${name}/` })
    t.strictSame([...collection.values()], [{ title: name }])
  }
})

t.test('deleting says whether there was one', async (t) => {
  const store = await openStore(t)
  const stations = await createCollection<Station>(store, { prefix: 'station/' })
  await stations.put('kw1', { title: 'Küstenwelle 1' })
  t.equal(await stations.delete('kw1'), true)
  t.equal(await stations.delete('kw1'), false)
  t.equal(stations.get('kw1'), undefined)
  t.equal((await createCollection<Station>(store, { prefix: 'station/' })).size, 0)
})

t.test('changes alongside are stored with the document', async (t) => {
  const store = await openStore(t)
  const stations = await createCollection<Station>(store, { prefix: 'station/' })
  await stations.put('kw1', { title: 'Küstenwelle 1' }, [{ put: 'other', value: 'x' }])
  t.equal((await store.get('other'))?.toString(), 'x')
  await stations.delete('kw1', [{ del: 'other' }])
  t.equal(await store.get('other'), undefined)
})

t.test('changes alongside are not stored where there is nothing to delete', async (t) => {
  const store = await openStore(t)
  const stations = await createCollection<Station>(store, { prefix: 'station/' })
  t.equal(await stations.delete('none', [{ put: 'other', value: 'x' }]), false)
  t.equal(await store.get('other'), undefined)
})

t.test('a document is shown only once it is stored', async (t) => {
  const store = await openStore(t)
  const stations = await createCollection<Station>(store, { prefix: 'station/' })
  const putting = stations.put('kw1', { title: 'Küstenwelle 1' })
  t.equal(stations.get('kw1'), undefined)
  await putting
  t.ok(stations.get('kw1'))
})

t.test('of concurrent puts the last call wins, in memory as in the store', async (t) => {
  const store = await openStore(t)
  const stations = await createCollection<Station>(store, { prefix: 'station/' })
  const titles = Array.from({ length: 50 }, (_, index) => `title ${index}`)
  await Promise.all(titles.map((title) => stations.put('kw1', { title })))
  t.strictSame(stations.get('kw1'), { title: 'title 49' })
  t.strictSame((await createCollection<Station>(store, { prefix: 'station/' })).get('kw1'), {
    title: 'title 49',
  })
})

t.test('what cannot be stored is not shown, and what cannot be deleted stays', async (t) => {
  const store = await openStore(t)
  const stations = await createCollection<Station>(store, { prefix: 'station/' })
  await stations.put('kw1', { title: 'Küstenwelle 1' })
  await store.close()
  await t.rejects(stations.put('kw1', { title: 'other' }))
  await t.rejects(stations.put('kw2', { title: 'Küstenwelle 2' }))
  await t.rejects(stations.delete('kw1'))
  t.strictSame([...stations.values()], [{ title: 'Küstenwelle 1' }])
})
