import { join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import { createCalls } from '../../../store/nodes/calls.ts'
import { createMembership } from '../../../store/nodes/membership.ts'
import { createOnlyNode } from '../../../store/nodes/nodes.ts'
import { openStore } from '../../open-store.ts'
import { createSharedSpace, settled } from '../../shared-store.ts'

async function openNodes(t: Test) {
  const space = createSharedSpace()
  const directory = t.testdir()
  const open = async (name: string) => {
    const store = space.openFollowed(t)
    const log = pino({ level: 'silent' })
    const idFile = join(directory, name)
    const nodes = await createMembership({
      store,
      name,
      idFile,
      onGap: (reason) => t.error(reason),
      log,
      heartbeatMs: 1_000_000_000,
    })
    const calls = createCalls({ store, nodes })
    await nodes.join()
    t.teardown(() => nodes.leave().catch(() => undefined))
    return { store, nodes, calls }
  }
  const [a, b, c] = [await open('a'), await open('b'), await open('c')]
  await settled(a.store, b.store, c.store)
  return { a, b, c }
}

t.test('a node does for another what it serves', async (t) => {
  const { a, b, c } = await openNodes(t)
  b.calls.serve('double', async (args) => Number(args) * 2)
  c.calls.serve('double', () => t.fail('nobody asked this one'))
  t.equal(await a.calls.ask(b.nodes.self, 'double', 21), 42)
  const many = await Promise.all([1, 2, 3].map((n) => a.calls.ask(b.nodes.self, 'double', n)))
  t.strictSame(many, [2, 4, 6])
})

t.test('all others are asked at once', async (t) => {
  const { a, b, c } = await openNodes(t)
  for (const { calls, nodes } of [a, b, c]) calls.serve('name', () => nodes.name)
  t.strictSame(await a.calls.askOthers('name', null), [
    [b.nodes.self, 'b'],
    [c.nodes.self, 'c'],
  ])
})

t.test('a node asks itself without the others', async (t) => {
  const { a } = await openNodes(t)
  a.calls.serve('name', () => a.nodes.name)
  a.store.cut()
  t.equal(await a.calls.ask(a.nodes.self, 'name', null), 'a')
})

t.test('what has no answer is null, what does not answer is left out', async (t) => {
  const { a, b, c } = await openNodes(t)
  b.calls.serve('nothing', () => undefined)
  t.equal(await a.calls.ask(b.nodes.self, 'nothing', null), null)
  t.equal(await a.calls.ask(b.nodes.self, 'unknown to it', null), null)
  b.calls.serve('ask', () => 'here')
  c.calls.serve('ask', () => {
    throw new Error('cannot')
  })
  t.strictSame(await a.calls.askOthers('ask', null), [[b.nodes.self, 'here']])
  t.equal(await a.calls.ask('no such node', 'ask', null), undefined)
  t.strictSame(
    await a.calls.answersOfOthers('only of b', null),
    [],
    'a node that is starting serves nothing yet',
  )
  b.calls.serve('only of b', () => ['here'])
  t.strictSame(await a.calls.answersOfOthers('only of b', null), [['here']])
})

t.test('a question that the store does not take is refused at once', async (t) => {
  const { a, b } = await openNodes(t)
  a.store.cut()
  await t.rejects(a.calls.ask(b.nodes.self, 'name', null))
})

t.test('a node alone has nobody to ask', async (t) => {
  const store = await openStore(t)
  const nodes = createOnlyNode('only')
  const calls = createCalls({ store, nodes })
  calls.serve('name', () => 'only')
  t.strictSame(await calls.askOthers('name', null), [])
  t.equal(await calls.ask(nodes.self, 'name', null), 'only')
})
