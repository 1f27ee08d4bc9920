import t from 'tap'
import { openJournal } from '../../journal/journal.ts'
import { createMemoryStore } from '../delivery/memory-store.ts'

/** A journal with messages of one stream, on three topics in turn. Message `n` was accepted at time `n`. */
async function start(count: number) {
  const { store } = createMemoryStore()
  const journal = await openJournal(store)
  for (let position = 1; position <= count; position++) {
    const topic = ['a', 'b', 'c'][position % 3] ?? ''
    const payload = Buffer.from(String(position))
    const message = { topic, stream: 's', payload, qos: 1 as const, queue: { keep: 'latest' as const } }
    await store.commit(journal.append([message], position))
  }
  return journal
}

t.test('the newest messages of some topics since a time, in order', async (t) => {
  const journal = await start(1_300)
  const positions = async (topics: string[], since: number, count: number) =>
    (await journal.latestOf('s', { topics, since, count })).map(({ position }) => position)
  t.same(await positions(['a', 'b', 'c'], 1_297, 100), [1_297, 1_298, 1_299, 1_300])
  t.same(await positions(['a'], 1_290, 100), [1_290, 1_293, 1_296, 1_299])
  t.same(await positions(['a', 'b'], 1, 3), [1_297, 1_299, 1_300])
  t.equal((await positions(['a', 'b', 'c'], 0, 2_000)).length, 1_300, 'over several pages')
  t.same(await positions(['d'], 0, 10), [])
  t.same(await positions(['a'], 2_000, 10), [])
  t.same(await journal.latestOf('other', { topics: ['a'], since: 0, count: 10 }), [])
})
