import t from 'tap'
import { addCounts, countSubscribers } from '../../broker/subscriber-counts.ts'

const count = (clients: string[][], ...livestreams: string[]) =>
  countSubscribers(clients, new Set(livestreams))

t.test('a client counts once for each livestream that its filters name', async (t) => {
  const clients = [
    ['radio/a/#'],
    ['radio/a/track/playing', 'radio/a/control', 'radio/b/#'],
    ['feedback/urn:org:institution:1'],
    [],
  ]
  t.match(await count(clients, 'a', 'b', 'c'), { ofAll: 0, byLivestream: { a: 2, b: 1 } })
})

t.test('a client that reads all livestreams counts apart, and only there', async (t) => {
  const clients = [['radio/#'], ['radio/+/control', 'radio/a/#'], ['radio/a/#']]
  t.match(await count(clients, 'a'), { ofAll: 2, byLivestream: { a: 1 } })
})

t.test('a livestream may be called like a property of objects', async (t) => {
  const { byLivestream } = await count([['radio/__proto__/#']], '__proto__')
  t.same(Object.entries(byLivestream), [['__proto__', 1]])
})

t.test('the counts of nodes add up', async (t) => {
  const [one, two] = await Promise.all([
    count([['radio/a/#'], ['radio/#']], 'a', 'b'),
    count([['radio/a/#'], ['radio/b/#']], 'a', 'b'),
  ])
  t.match(addCounts([one, two]), { ofAll: 1, byLivestream: { a: 2, b: 1 } })
})

t.test('livestreams that nobody asked for are not counted', async (t) => {
  const clients = [['radio/a/#', 'radio/b/#', ...Array.from({ length: 2_000 }, (_, nth) => `radio/${nth}/#`)]]
  t.same(Object.entries((await count(clients, 'b')).byLivestream), [['b', 1]])
})

t.test('many filters are looked at in several turns', async (t) => {
  let turns = 0
  const ticking = setInterval(() => turns++, 0)
  t.teardown(() => clearInterval(ticking))
  const clients = Array.from({ length: 100 }, () => Array<string>(1_000).fill('radio/a/#'))
  t.match(await count(clients, 'a'), { byLivestream: { a: 100 } })
  t.ok(turns > 0, 'others got their turn')
})
