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

t.test('in whatever order messages come and go, they are walked from the newest on', async (t) => {
  const returnable = await openReturnable(createSharedSpace().open())
  const topics = new Map<number, string>()
  let random = 7
  const next = (below: number) => {
    random = (random * 48_271) % 2_147_483_647
    return random % below
  }
  for (let step = 0; step < 3_000; step++) {
    const position = 1 + next(500)
    const topic = `radio/${next(3)}/track`
    if (topics.delete(position)) returnable.remove(position)
    else {
      topics.set(position, topic)
      returnable.add({ position, topic, qos: 1 })
    }
    if (step % 50 > 0) continue
    const expected = [...topics].sort(([a], [b]) => b - a)
    const since = (after: number, filter: string) =>
      returnable.since(after, [filter]).map(({ position, topic }) => [position, topic])
    t.same(since(0, '#'), expected)
    t.same(
      since(250, 'radio/1/#'),
      expected.filter(([position, topic]) => position > 250 && topic === 'radio/1/track'),
    )
  }
})

t.test('of a topic that changes all the time only the newest is found, and others stay', async (t) => {
  const returnable = await openReturnable(createSharedSpace().open())
  returnable.setLatest({ position: 1, topic: 'radio/quiet/track', qos: 1 })
  for (let position = 2; position <= 1_000; position++)
    returnable.setLatest({ position, topic: 'radio/busy/track', qos: 1 })
  const positions = (after: number) => returnable.since(after, ['radio/#']).map(({ position }) => position)
  t.same(positions(0), [1_000, 1])
  t.same(positions(1), [1_000])
  returnable.removeLatest('radio/busy/track', 1_000)
  returnable.removeLatest('radio/quiet/track', 1)
  t.same(positions(0), [])
})

t.test(
  'a value that was replaced is gone: by one at QoS 0 wholly, and no removal takes the newer one',
  async (t) => {
    const returnable = await openReturnable(createSharedSpace().open())
    const topic = 'radio/x/track'
    const positions = () => returnable.since(0, ['#']).map(({ position }) => position)
    returnable.setLatest({ position: 1, topic, qos: 1 })
    returnable.setLatest({ position: 2, topic, qos: 1 })
    returnable.removeLatest(topic, 1)
    t.same(positions(), [2])
    returnable.setLatest({ position: 3, topic, qos: 0 })
    t.same(positions(), [])
  },
)

t.test('what has expired is swept up, and what is added twice comes once', async (t) => {
  const returnable = await openReturnable(createSharedSpace().open())
  const positions = () => returnable.since(0, ['#']).map(({ position }) => position)
  returnable.setLatest({ position: 1, topic: 'over', qos: 1, expires: 10 })
  returnable.setLatest({ position: 2, topic: 'valid', qos: 1, expires: 11 })
  for (const position of [3, 3]) returnable.add({ position, topic: 'event', qos: 1, expires: 11 })
  t.same(positions(), [3, 2, 1])
  returnable.sweep(10)
  t.same(positions(), [3, 2])
})
