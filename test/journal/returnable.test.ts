import t from 'tap'
import { openReturnable } from '../../journal/returnable.ts'
import { createSharedSpace } from '../shared-store.ts'

t.test('filters find what they may match, each message once, the newest first', async (t) => {
  const returnable = await openReturnable(createSharedSpace().open())
  const topics = ['a', 'a/b', 'a/b/c', 'a/x', 'b/b', 'b/b/c', '/a']
  for (const [index, topic] of topics.entries()) returnable.add({ position: 10 + index, topic, qos: 1 })
  const since = (position: number, ...filters: string[]) =>
    returnable.since(position, filters).map(({ topic }) => topic)
  t.same(since(0, '#'), topics.toReversed())
  t.same(since(0, '+/b'), topics.toReversed())
  t.same(since(0, 'a/#'), ['a/x', 'a/b/c', 'a/b', 'a'])
  t.same(since(0, 'a'), ['a/x', 'a/b/c', 'a/b', 'a'])
  t.same(since(0, 'a/b/#'), ['a/b/c', 'a/b'])
  t.same(since(0, 'a/b', 'a/b/c', 'a/x'), ['a/x', 'a/b/c', 'a/b'])
  t.same(since(0, 'a/b', 'a/#', 'b/b/+'), ['b/b/c', 'b/b', 'a/x', 'a/b/c', 'a/b', 'a'])
  t.same(since(12, 'a/#'), ['a/x'])
  t.same(since(0, 'none/at/all', 'a/none'), [])
  returnable.remove(13)
  t.same(since(12, 'a/#'), [])
})
