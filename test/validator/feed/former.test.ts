import t from 'tap'
import type { Feed } from '../../../validator/feed/feed.ts'
import { createFormerLivestreams } from '../../../validator/feed/former.ts'
import { createMemoryStore } from '../../delivery/memory-store.ts'
import { createSharedSpace, settled } from '../../shared-store.ts'
import { feedOf, item, livestreamOf } from '../feeds.ts'

const open = (memory: ReturnType<typeof createMemoryStore>) => createFormerLivestreams(memory.store, 'feed/')

t.test('what a feed listed last stays known until one lists it again', async (t) => {
  const memory = createMemoryStore()
  const former = await open(memory)
  const [first, second] = [feedOf(item(1), item(2), item(3)), feedOf(item(2), item(4))]
  const dropped = former.change(first, second, 1_000)
  t.equal(former.livestreams.byId.get(livestreamOf(1).id), undefined, 'not before it is stored')
  await memory.store.commit(dropped.changes)
  dropped.show()
  for (const { livestreams } of [former, await open(memory.crashed())]) {
    t.match(livestreams.byId.get(livestreamOf(1).id), livestreamOf(1))
    t.match(livestreams.byExternalId.get('crid://example/3'), [livestreamOf(3)])
    t.match(livestreams.likeExternalId('CRID://example/3 '), [livestreamOf(3)])
    t.same(livestreams.byExternalId.get('crid://example/2'), [])
  }
  const again = former.change(second, feedOf(item(1, 2), item(2), item(4)), 2_000)
  await memory.store.commit(again.changes)
  again.show()
  t.same(memory.keys('feed/former/'), [`feed/former/${livestreamOf(3).id}`])
  t.same(former.livestreams.byExternalId.get('crid://example/1'), [])
  t.same(
    former.change(undefined, feedOf(item(9)), 0).changes,
    [],
    'without a feed before it nothing drops out',
  )
})

t.test('an external id names the livestream that had it last', async (t) => {
  const memory = createMemoryStore()
  const former = await open(memory)
  const name = { externalId: 'crid://example/shared' }
  const feeds = [
    feedOf(item(1, 1, name), item(9)),
    feedOf(item(2, 2, name), item(3, 3, name), item(9)),
    feedOf(item(9)),
  ]
  for (const [index, feed] of feeds.entries()) former.change(feeds[index - 1], feed, index).show()
  t.match(
    former.livestreams.byExternalId.get(name.externalId).map(({ id }) => id),
    [livestreamOf(2).id, livestreamOf(3).id],
  )
  t.ok(former.livestreams.byId.get(livestreamOf(1).id))
})

t.test('other nodes hear of it, and one that lags behind does not know better', async (t) => {
  const space = createSharedSpace()
  const stores = [space.openFollowed(t), space.openFollowed(t)] as const
  const a = await createFormerLivestreams(stores[0], 'feed/')
  const b = await createFormerLivestreams(stores[1], 'feed/')
  for (const store of stores) store.start()
  const feeds = [feedOf(item(1), item(9)), feedOf(item(1, 2), item(9)), feedOf(item(9))] as const
  for (const index of [1, 2] as const) {
    const { changes, show } = a.change(feeds[index - 1], feeds[index], index)
    await stores[0].commit(changes)
    show()
  }
  await settled(...stores)
  t.match(b.livestreams.byExternalId.get('crid://example/1'), [livestreamOf(1, 2)])
  t.same(b.change(feeds[0], feeds[2], 3).changes, [], 'its feed was older')
  const { changes, show } = a.change(feeds[2], feeds[1], 4)
  await stores[0].commit(changes)
  show()
  await settled(...stores)
  t.same(b.livestreams.byExternalId.get('crid://example/1'), [])
})

t.test('a name that a livestream had before goes on leading to it', async (t) => {
  const memory = createMemoryStore()
  const former = await open(memory)
  const named = (externalId: string) => feedOf(item(1, 1, { externalId }), item(9))
  const feeds = [named('crid://example/a'), named('crid://example/b'), named('crid://example/c')] as const
  const adopt = async (before: Feed, next: Feed, at: number) => {
    const { changes, show } = former.change(before, next, at)
    await memory.store.commit(changes)
    show()
  }
  await adopt(feeds[0], feeds[1], 1)
  await adopt(feeds[1], feeds[2], 2)
  const idsOf = (externalId: string, { livestreams } = former) =>
    livestreams.byExternalId.get(externalId).map(({ id }) => id)
  for (const one of [former, await open(memory.crashed())]) {
    t.same(idsOf('crid://example/a', one), [livestreamOf(1).id])
    t.match(one.livestreams.likeExternalId('CRID://example/b'), [{ id: livestreamOf(1).id }])
    t.same(idsOf('crid://example/c', one), [], 'which the feed lists')
  }
  await adopt(feeds[2], feedOf(item(9)), 3)
  t.same(idsOf('crid://example/c'), [livestreamOf(1).id])
  t.match(former.livestreams.byId.get(livestreamOf(1).id), { externalId: 'crid://example/c' })
  await adopt(feedOf(item(9)), feeds[0], 4)
  t.same(
    ['a', 'b', 'c'].map((name) => idsOf(`crid://example/${name}`).length),
    [0, 1, 1],
  )
  t.equal(former.livestreams.byId.get(livestreamOf(1).id), undefined, 'listed again')
  t.equal((await open(memory.crashed())).livestreams.byExternalId.get('crid://example/c').length, 1)
})

t.test('of the names of a livestream the twenty newest lead to it', async (t) => {
  const memory = createMemoryStore()
  const former = await open(memory)
  const named = (number: number) => `crid://example/name-${number}`
  const feed = (number: number) => feedOf(item(1, 1, { externalId: named(number) }), item(9))
  const adopt = async (before: Feed, next: Feed, at: number) => {
    const { changes, show } = former.change(before, next, at)
    await memory.store.commit(changes)
    show()
  }
  for (let number = 0; number < 25; number++) await adopt(feed(number), feed(number + 1), number)
  const known = ({ livestreams }: typeof former) =>
    Array.from({ length: 25 }, (_, number) => number).filter(
      (number) => livestreams.byExternalId.get(named(number)).length > 0,
    )
  const newest = Array.from({ length: 20 }, (_, index) => index + 5)
  for (const one of [former, await open(memory.crashed())]) t.same(known(one), newest)
  t.equal(memory.keys('feed/former/').length, 20)

  await adopt(feed(25), feedOf(item(9)), 26)
  await adopt(feedOf(item(9)), feed(26), 27)
  t.same(known(former), newest.slice(1), 'the name it dropped out with counts as well')
  t.equal(memory.keys('feed/former/').length, 20)
})

t.test('other nodes hear of a new name', async (t) => {
  const space = createSharedSpace()
  const stores = [space.openFollowed(t), space.openFollowed(t)] as const
  const [a, b] = [
    await createFormerLivestreams(stores[0], 'feed/'),
    await createFormerLivestreams(stores[1], 'feed/'),
  ]
  for (const store of stores) store.start()
  const feeds = [feedOf(item(1)), feedOf(item(1, 1, { externalId: 'crid://example/new' }))] as const
  const { changes, show } = a.change(feeds[0], feeds[1], 1)
  await stores[0].commit(changes)
  show()
  await settled(...stores)
  t.match(b.livestreams.byExternalId.get('crid://example/1'), [{ id: livestreamOf(1).id }])
  t.same(b.change(feeds[0], feeds[1], 2).changes, [], 'it knows already')
})
