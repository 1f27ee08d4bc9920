import t from 'tap'
import type { Count } from '../../listener/shared-counts.ts'
import { createCounts } from '../../workers/counts.ts'

t.test('a worker hears what the others count, from its start to their end', async (t) => {
  const told: [number, Count[]][] = []
  const counts = createCounts((number, changes) => told.push([number, changes]))
  t.same(counts.begin(1), [])
  counts.add(1, [
    ['mqtt', 3],
    ['https', 1],
  ])
  counts.add(1, [['https', -1]])
  t.same(told, [], 'there is no other')

  t.same(counts.begin(2), [['mqtt', 3]])
  counts.add(2, [['mqtt', 1]])
  t.same(told.splice(0), [[1, [['mqtt', 1]]]])
  counts.end(1)
  t.same(told.splice(0), [[2, [['mqtt', -3]]]], 'who has ended counts nothing')
  counts.add(1, [['mqtt', 1]])
  t.same(told, [], 'its last message may come late')
  t.same(counts.begin(1), [['mqtt', 1]])
})
