import t from 'tap'
import { crc64, deriveLivestreamId } from '../../event/derived-id.ts'
import { commitTogether } from '../../store/commit-together.ts'
import type { Store } from '../../store/store.ts'
import { createTopics, type Topics } from '../../validator/topics.ts'
import { createMemoryStore } from '../delivery/memory-store.ts'
import { forgedName } from '../event/forged-name.ts'
import { createSharedSpace, settled } from '../shared-store.ts'

const [ours, theirs] = ['urn:org:institution:1', 'urn:org:institution:2']
const externalId = 'crid://a.example/New'
const id = deriveLivestreamId('Livestream', externalId)

/** Makes the topic of an unlisted livestream. False: the store has rejected the commit. */
async function make(topics: Topics, store: Store, institutionId: string, now = 0, name = externalId) {
  const livestreamId = deriveLivestreamId('Livestream', name)
  const unlisted = new Map([[livestreamId, { institutionId, externalId: name }]])
  const made = commitTogether(store, [topics.missing([livestreamId], now, unlisted)])
  return made.then(
    () => true,
    () => false,
  )
}

t.test('a livestream outside of the feed is the institution\u2019s that makes its topic', async (t) => {
  const memory = createMemoryStore()
  const topics = await createTopics(memory.store)
  t.equal(topics.ownerOf(id, externalId, ours), undefined)
  const making = make(topics, memory.store, ours)
  t.equal(topics.ownerOf(id, externalId, ours), ours, 'from then on, while it is being stored')
  t.equal(topics.countOf(ours), 1, 'and counts')
  t.ok(topics.has(id), 'so that it needs no more room')
  await making
  for (const again of [topics, await createTopics(memory.crashed().store)]) {
    t.equal(again.ownerOf(id, externalId, ours), ours)
    for (const alike of ['crid://A.example/new', 'crid://a.example/%4Eew', 'crid://a.example/new']) {
      t.equal(again.ownerOf(deriveLivestreamId('Event', alike), alike, theirs), ours, alike)
    }
    t.equal(again.ownerOf(deriveLivestreamId('Event', 'x'), 'x', ours), undefined)
    t.equal(again.countOf(ours), 1)
  }
})

t.test('a topic that could not be stored is nobody\u2019s', async (t) => {
  const memory = createMemoryStore()
  const topics = await createTopics(memory.store)
  memory.judge(() => 'refused')
  t.same(await Promise.all([make(topics, memory.store, ours), make(topics, memory.store, ours)]), [
    false,
    false,
  ])
  t.equal(topics.ownerOf(id, externalId, ours), undefined)
  memory.judge(() => 'stored')
  const left = [make(topics, memory.store, theirs), make(topics, memory.store, theirs)]
  t.same(await Promise.all(left), [true, true])
  t.equal(topics.ownerOf(id, externalId, ours), theirs)
})

t.test('a name that reads like somebody else\u2019s is not had by one with its checksum', async (t) => {
  const memory = createMemoryStore()
  const topics = await createTopics(memory.store)
  const alike = externalId.toUpperCase()
  const forged = forgedName('crid://b.example/', alike)
  const idOf = (name: string) => deriveLivestreamId('Livestream', name)
  await make(topics, memory.store, ours)
  await make(topics, memory.store, theirs, 0, forged)
  t.equal(idOf(forged), idOf(alike), 'it has the same id')
  for (const again of [topics, await createTopics(memory.crashed().store)]) {
    t.equal(again.ownerOf(idOf(alike), alike, theirs), ours)
    t.equal(again.ownerOf(idOf(forged), forged, theirs), theirs, 'under the forged name it stays theirs')
  }
})

t.test('topics of an earlier release tell whose they are, or that nobody knows', async (t) => {
  const memory = createMemoryStore()
  const listed = 'urn:org:livestream:listed'
  const old = [{ id: listed }, { id: deriveLivestreamId('Livestream', 'crid://a/b'), institutionId: ours }]
  await memory.store.commit(
    old.map((topic) => ({ put: `topic/${topic.id}`, value: JSON.stringify({ createdAt: '', ...topic }) })),
  )
  const topics = await createTopics(memory.store)
  t.equal(topics.ownerOf(listed, 'any', ours), 'unknown')
  for (const name of ['crid://a/b', 'crid://A/B']) {
    t.equal(topics.ownerOf(deriveLivestreamId('Event', name), name, theirs), ours, name)
  }
})

t.test('of two nodes that make a topic at once the earlier has it, on both', async (t) => {
  for (const [why, times] of [
    ['the first stored', [1_000, 2_000]],
    ['the second stored', [2_000, 1_000]],
  ] as const) {
    const space = createSharedSpace()
    const stores = [space.openFollowed(t), space.openFollowed(t)] as const
    const [a, b] = [await createTopics(stores[0]), await createTopics(stores[1])]
    for (const store of stores) store.start()
    await Promise.all([make(a, stores[0], ours, times[0]), make(b, stores[1], theirs, times[1])])
    await settled(...stores)
    const owner = times[0] < times[1] ? ours : theirs
    t.same([a.ownerOf(id, externalId, ours), b.ownerOf(id, externalId, ours)], [owner, owner], why)
    t.equal(
      (await createTopics(space.openFollowed(t))).ownerOf(id, externalId, ours),
      owner,
      `${why}: as stored`,
    )
  }
})

t.test('what is stored of a name is short, however long it is', async (t) => {
  const memory = createMemoryStore()
  const topics = await createTopics(memory.store)
  const long = `crid://a.example/${'X'.repeat(400)}`
  await make(topics, memory.store, ours, 0, long)
  t.match([...topics.stored.values()], [{ folded: crc64(long.toLowerCase()) }])
})
