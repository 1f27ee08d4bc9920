import t from 'tap'
import { addCounts, countSubscribers } from '../../broker/subscriber-counts.ts'

t.test('a client counts once for each livestream that its filters name', async (t) => {
  const clients = [
    ['radio/a/#'],
    ['radio/a/track/playing', 'radio/a/control', 'radio/b/#'],
    ['feedback/urn:org:institution:1'],
    [],
  ]
  t.match(countSubscribers(clients), { ofAll: 0, byLivestream: { a: 2, b: 1 } })
})

t.test('a client that reads all livestreams counts apart, and only there', async (t) => {
  const clients = [['radio/#'], ['radio/+/control', 'radio/a/#'], ['radio/a/#']]
  t.match(countSubscribers(clients), { ofAll: 2, byLivestream: { a: 1 } })
})

t.test('a livestream may be called like a property of objects', async (t) => {
  t.same(Object.entries(countSubscribers([['radio/__proto__/#']]).byLivestream), [['__proto__', 1]])
})

t.test('the counts of nodes add up', async (t) => {
  const [one, two] = [
    countSubscribers([['radio/a/#'], ['radio/#']]),
    countSubscribers([['radio/a/#'], ['radio/b/#']]),
  ]
  t.match(addCounts([one, two]), { ofAll: 1, byLivestream: { a: 2, b: 1 } })
})
