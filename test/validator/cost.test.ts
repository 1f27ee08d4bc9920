import t from 'tap'
import { costOf } from '../../validator/cost.ts'

t.test('an event costs one token, or one for each 64 KiB over all its livestreams', async (t) => {
  const table: [bytes: number, livestreams: number, cost: number][] = [
    [0, 0, 1],
    [500, 1, 1],
    [5_000, 10, 1],
    [64 * 1024, 1, 1],
    [128 * 1024, 1, 2],
    [32 * 1024, 4, 2],
    [400 * 1024, 0, 6.25],
    [400 * 1024, 20, 125],
    [40 * 1024, 200, 125],
  ]
  for (const [bytes, livestreams, cost] of table) {
    t.equal(costOf(bytes, livestreams), cost, `${bytes} bytes for ${livestreams}`)
  }
})
