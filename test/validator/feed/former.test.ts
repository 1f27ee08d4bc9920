import t from 'tap'
import { type Former, nextFormer, openFormer } from '../../../validator/feed/former.ts'
import { pack } from '../../../validator/feed/packed.ts'
import { item, listedIn, livestreamOf } from '../feeds.ts'

type Listed = ReturnType<typeof listedIn>

/** What is former after each of these feeds has replaced the one before it. */
function formerAfter(...feeds: Listed[]): Former[] {
  let kept: Former[] = []
  for (const [index, { feed }] of feeds.entries()) {
    kept = [...nextFormer(kept, feeds[index - 1]?.livestreams ?? [], feed, index)]
  }
  return kept
}

const openAfter = (...feeds: Listed[]) => openFormer(pack(formerAfter(...feeds)))
const named = (externalId: string) => listedIn(item(1, 1, { externalId }), item(9))

t.test('what a feed listed last stays known until one lists it again', async (t) => {
  const feeds = [listedIn(item(1), item(2), item(3)), listedIn(item(2), item(4))]
  const former = openAfter(...feeds)
  t.match(former.byId.get(livestreamOf(1).id), livestreamOf(1))
  t.match(former.byExternalId.get('crid://example/3'), [livestreamOf(3)])
  t.match(former.likeExternalId('CRID://example/3 '), [livestreamOf(3)])
  t.same(former.byExternalId.get('crid://example/2'), [])
  const again = formerAfter(...feeds, listedIn(item(1, 2), item(2), item(4)))
  t.same(
    again.map(({ id }) => id),
    [livestreamOf(3).id],
  )
  t.same(formerAfter(listedIn(item(9))), [], 'without a feed before it nothing drops out')
})

t.test('an external id names the livestream that had it last', async (t) => {
  const name = { externalId: 'crid://example/shared' }
  const former = openAfter(
    listedIn(item(1, 1, name), item(9)),
    listedIn(item(2, 2, name), item(3, 3, name), item(9)),
    listedIn(item(9)),
  )
  const found = former.byExternalId.get(name.externalId) ?? []
  t.match(found.map(({ id }) => id).sort(), [livestreamOf(2).id, livestreamOf(3).id])
  t.ok(former.byId.get(livestreamOf(1).id))
})

t.test('a name that a livestream had before goes on leading to it', async (t) => {
  const feeds = ['a', 'b', 'c'].map((letter) => named(`crid://example/${letter}`))
  const idsOf = (externalId: string, former: ReturnType<typeof openFormer>) =>
    (former.byExternalId.get(externalId) ?? []).map(({ id }) => id)
  const former = openAfter(...feeds)
  t.same(idsOf('crid://example/a', former), [livestreamOf(1).id])
  t.match(former.likeExternalId('CRID://example/b'), [{ id: livestreamOf(1).id }])
  t.same(idsOf('crid://example/c', former), [], 'which the feed lists')
  t.equal(former.byId.get(livestreamOf(1).id), undefined, 'a name is no livestream that dropped out')

  const dropped = openAfter(...feeds, listedIn(item(9)))
  t.same(idsOf('crid://example/c', dropped), [livestreamOf(1).id])
  t.match(dropped.byId.get(livestreamOf(1).id), { externalId: 'crid://example/c' })
  const again = openAfter(...feeds, listedIn(item(9)), named('crid://example/a'))
  t.same(
    ['a', 'b', 'c'].map((name) => idsOf(`crid://example/${name}`, again).length),
    [0, 1, 1],
  )
  t.equal(again.byId.get(livestreamOf(1).id), undefined, 'listed again')
})

t.test('of the names of a livestream the twenty newest lead to it', async (t) => {
  const nameOf = (number: number) => `crid://example/name-${number}`
  const feeds = Array.from({ length: 26 }, (_, number) => named(nameOf(number)))
  const known = (former: readonly Former[]) =>
    former.map(({ externalId }) => Number(externalId.split('-').at(-1))).sort((a, b) => a - b)
  const newest = Array.from({ length: 20 }, (_, index) => index + 5)
  t.same(known(formerAfter(...feeds)), newest)
  const back = [listedIn(item(9)), named(nameOf(26))]
  t.same(known(formerAfter(...feeds, ...back)), [...newest.slice(1), 25], 'also the one it dropped out with')
})

t.test('of all that dropped out, the newest stay', async (t) => {
  const [before, after] = [listedIn(item(1), item(2), item(3), item(9)), listedIn(item(3), item(9))]
  const dropped = nextFormer([], before.livestreams, after.feed, 1)
  const kept = [...nextFormer(dropped, after.livestreams, listedIn(item(9)).feed, 2, 2)]
  t.equal(kept.length, 2)
  t.match(kept[0], { id: livestreamOf(3).id, droppedAt: 2 })
})
