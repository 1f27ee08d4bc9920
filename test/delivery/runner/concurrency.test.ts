import t from 'tap'
import { createConcurrency } from '../../../delivery/runner/concurrency.ts'

/** Waits for one turn of the event loop: code that awaits a settled promise continues meanwhile. */
const turn = () => new Promise((resolve) => setImmediate(resolve))

function watch(gate: ReturnType<typeof createConcurrency>) {
  const inside: string[] = []
  const leaves = new Map<string, () => void>()
  return {
    inside,
    enter(name: string, endpoint: string, owner = name): void {
      void gate.enter(endpoint, owner).then((leave) => {
        inside.push(name)
        leaves.set(name, leave)
      })
    },
    async leave(name: string): Promise<void> {
      leaves.get(name)?.()
      inside.splice(inside.indexOf(name), 1)
      await turn()
    },
  }
}

t.test('so many at once in total, and of each endpoint; the others in the order of arrival', async (t) => {
  const gate = watch(createConcurrency({ total: 3, perEndpoint: 2 }))
  for (const name of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1']) gate.enter(name, name[0] ?? '')
  await turn()
  t.same(gate.inside, ['a1', 'a2', 'b1'])
  await gate.leave('a1')
  t.equal(gate.inside.length, 3)
  t.ok(gate.inside.includes('b2'), 'it waited for a place in total before a3 had one of its endpoint')
  await gate.leave('a2')
  t.same(gate.inside, ['b1', 'b2', 'c1'])
  await gate.leave('b1')
  t.same(gate.inside, ['b2', 'c1', 'a3'])
})

t.test('an endpoint that is full keeps nobody else waiting', async (t) => {
  const gate = watch(createConcurrency({ total: 10, perEndpoint: 2 }))
  for (let index = 0; index < 50; index++) gate.enter(`dead ${index}`, 'dead')
  gate.enter('healthy', 'healthy')
  await turn()
  t.same(gate.inside, ['dead 0', 'dead 1', 'healthy'])
})

t.test('slots come back, however often they are used', async (t) => {
  const gate = createConcurrency({ total: 2, perEndpoint: 1 })
  let most = 0
  let now = 0
  const visit = async (endpoint: string) => {
    const leave = await gate.enter(endpoint, endpoint)
    most = Math.max(most, ++now)
    await turn()
    now--
    leave()
  }
  await Promise.all(Array.from({ length: 300 }, (_, index) => visit(`endpoint ${index % 7}`)))
  t.match({ most, now }, { most: 2, now: 0 })
  await visit('endpoint 0')
})

t.test('one owner gets half, two a third each, and who has nothing gets a place at once', async (t) => {
  const gate = watch(createConcurrency({ total: 12, perEndpoint: 12 }))
  const of = (owner: string) => gate.inside.filter((name) => name.startsWith(owner)).length
  for (let index = 0; index < 50; index++) gate.enter(`slow ${index}`, `endpoint ${index}`, 'slow')
  await turn()
  t.equal(of('slow'), 6)
  gate.enter('healthy 0', 'elsewhere', 'healthy')
  await turn()
  t.equal(of('healthy'), 1)
  await gate.leave('healthy 0')
  for (let index = 0; index < 50; index++) gate.enter(`other ${index}`, `other ${index}`, 'other')
  await turn()
  t.same([of('slow'), of('other')], [6, 3], 'what is held cannot be taken back')
  await gate.leave('slow 0')
  await gate.leave('slow 1')
  t.same([of('slow'), of('other')], [4, 4], 'but it comes to the others')
  gate.enter('healthy 1', 'elsewhere', 'healthy')
  await turn()
  t.equal(of('healthy'), 1)
})

t.test('those who share an endpoint share its slots', async (t) => {
  const gate = watch(createConcurrency({ total: 100, perEndpoint: 4 }))
  for (let index = 0; index < 50; index++) gate.enter(`slow ${index}`, 'shared', 'slow')
  gate.enter('healthy', 'shared', 'healthy')
  await turn()
  t.same(gate.inside, ['slow 0', 'slow 1', 'healthy'])
})

t.test('owners who wait are served in turn, each in its order', async (t) => {
  const gate = watch(createConcurrency({ total: 1, perEndpoint: 10 }))
  for (const name of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1']) gate.enter(name, name, name[0])
  const order: string[] = []
  for (let served = 0; served < 6; served++) {
    await turn()
    const [name = ''] = gate.inside
    order.push(name)
    await gate.leave(name)
  }
  t.same(order, ['a1', 'a2', 'b1', 'c1', 'a3', 'b2'])
})
