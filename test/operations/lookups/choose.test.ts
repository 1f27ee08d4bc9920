import t from 'tap'
import { choose } from '../../../operations/lookups/choose.ts'

const rows = [
  { name: 'a', connected: true, classes: ['track', 'data'] },
  { name: 'b', connected: false, classes: [] },
  { name: 'a', connected: false, classes: ['data'] },
]

t.test('rows are chosen by their fields, and at most so many', async (t) => {
  for (const [wanted, limit, chosen] of [
    [{}, undefined, [0, 1, 2]],
    [{ name: undefined }, undefined, [0, 1, 2]],
    [{ name: 'a' }, undefined, [0, 2]],
    [{ name: 'a', connected: false }, undefined, [2]],
    [{ classes: 'data' }, undefined, [0, 2]],
    [{ classes: 'data' }, 1, [0]],
    [{ name: 'c' }, undefined, []],
    [{ none: 'a' }, undefined, []],
    [{}, 2, [0, 1]],
  ] as const) {
    t.same(
      choose(rows, wanted, limit),
      chosen.map((nth) => rows[nth]),
      JSON.stringify([wanted, limit]),
    )
  }
})
