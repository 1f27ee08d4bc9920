import t from 'tap'
import { createChain, type Link } from '../../journal/chain.ts'

t.test('in whatever order values come and go, they are walked from the newest on', async (t) => {
  const chain = createChain<{ position: number }>()
  const links = new Map<number, Link<{ position: number }>>()
  let random = 7
  const next = (below: number) => {
    random = (random * 48_271) % 2_147_483_647
    return random % below
  }
  for (let step = 0; step < 3_000; step++) {
    const position = next(500)
    const link = links.get(position)
    if (link) {
      chain.remove(link)
      links.delete(position)
    } else links.set(position, chain.add({ position }))
    if (step % 50 > 0) continue
    const expected = [...links.keys()].sort((a, b) => b - a)
    t.same(
      [...chain.fromNewest()].map((value) => value.position),
      expected,
    )
    t.equal(chain.isEmpty(), expected.length === 0)
  }
})
