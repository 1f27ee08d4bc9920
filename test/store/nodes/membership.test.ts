import { join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import { createGroupCommit, type Pending } from '../../../store/commit.ts'
import { createMembership } from '../../../store/nodes/membership.ts'
import { createOnlyNode, maxNodes } from '../../../store/nodes/nodes.ts'
import { createSharedSpace, type SharedSpace, settled } from '../../shared-store.ts'
import { until } from '../../until.ts'

/** A heartbeat interval that no test reaches, milliseconds. */
const never = 1_000_000_000
const heartbeatMs = 20

async function openNode(
  t: Test,
  space: SharedSpace,
  options: { idFile?: string; heartbeatMs?: number } = {},
) {
  const store = space.openFollowed(t)
  /** Commits wait for `until`, and go on in the order of their calls. */
  const held: { until: Promise<void> } = { until: Promise.resolve() }
  /** `there` delays each group of commits, and `back` delays the answers. Undefined: commits are not grouped. */
  let way: { there(): Promise<void>; back(): Promise<void> } | undefined
  const groups = createGroupCommit<Pending>(async (group) => {
    await way?.there()
    const outcomes = await Promise.allSettled(group.map(({ changes }) => store.commit(changes)))
    await way?.back()
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.status === 'fulfilled') group[index]?.resolve(outcome.value)
      else group[index]?.reject(outcome.reason)
    }
  })
  const commit: typeof store.commit = (changes) =>
    way
      ? new Promise((resolve, reject) => groups.add({ changes, resolve, reject }))
      : held.until.then(() => store.commit(changes))
  const enter: typeof store.enter = (...entry) => held.until.then(() => store.enter(...entry))
  const name = `node ${Math.random()}`
  let missedBeats = 0
  const log = pino(
    { level: 'debug' },
    { write: (line: string) => void (line.includes('sign of life not given') && missedBeats++) },
  )
  const idFile = options.idFile ?? join(t.testdir(), name)
  const nodes = await createMembership({
    store: { ...store, commit, enter },
    name,
    idFile,
    onGap: (reason) => t.error(reason),
    log,
    heartbeatMs: options.heartbeatMs ?? never,
  })
  const events: string[] = []
  nodes.onGone((node) => events.push(`gone ${node}`))
  nodes.onReturn(() => events.push('return'))
  const heard: string[] = []
  store.onOthers('state/', (_key, value) => void (value && heard.push(value.toString())))
  // tap runs teardowns in reverse order: the node leaves before its store closes.
  t.teardown(() => {
    store.restore()
    return nodes.leave().catch(() => undefined)
  })
  const hold = () => {
    let release = () => {}
    held.until = new Promise((resolve) => {
      release = resolve
    })
    return release
  }
  const travel = (over: NonNullable<typeof way>) => {
    way = over
  }
  return { store, nodes, events, heard, name, missedBeats: () => missedBeats, hold, commit, travel }
}

type Node = Awaited<ReturnType<typeof openNode>>

async function joined(t: Test, count: number, options: { heartbeatMs?: number } = {}) {
  t.testdir()
  const space = createSharedSpace()
  const all: Node[] = []
  for (let index = 0; index < count; index++) {
    const node = await openNode(t, space, options)
    await node.nodes.join()
    all.push(node)
  }
  await settled(...all.map(({ store }) => store))
  const [a, b, c] = all
  if (!a || !b) throw new Error('two nodes are needed')
  return { space, a, b, c: c ?? b, all }
}

t.test('a node that has joined loads nothing more: changes may have passed already', async (t) => {
  const { a } = await joined(t, 2)
  t.throws(() => a.store.onOthers('state/', () => {}), {
    message: 'state/ is loaded too late: the store is followed already',
  })
  t.doesNotThrow(() => a.store.onTold('a channel', () => {}), 'what is told is in no store')
})

t.test('nodes that join know each other, by slot', async (t) => {
  const { all, a, b, c } = await joined(t, 3)
  const ids = all.map(({ nodes }) => nodes.self)
  for (const { nodes } of all) t.strictSame(nodes.living(), ids)
  t.strictSame(
    all.map(({ nodes }) => nodes.slot()),
    [0, 1, 2],
  )
  t.strictSame(
    all.map(({ nodes }) => nodes.isLeader()),
    [true, false, false],
  )
  t.equal(a.nodes.nameOf(c.nodes.self), c.name)
  t.equal(a.nodes.nameOf('unknown'), 'unknown')
  t.equal(b.nodes.isLiving('unknown'), false)
})

t.test('nodes that join at once have different slots, and one of them leads', async (t) => {
  t.testdir()
  const space = createSharedSpace()
  const all = await Promise.all(Array.from({ length: 8 }, () => openNode(t, space)))
  t.strictSame(
    all.map(({ nodes }) => nodes.isLeader()),
    all.map(() => false),
    'who has no slot leads nothing',
  )
  await Promise.all(all.map(({ nodes }) => nodes.join()))
  await settled(...all.map(({ store }) => store))
  t.strictSame(all.map(({ nodes }) => nodes.slot()).sort(), [0, 1, 2, 3, 4, 5, 6, 7])
  t.equal(all.filter(({ nodes }) => nodes.isLeader()).length, 1)
})

t.test('a node that leaves is gone for the others, and leads nothing', async (t) => {
  const { a, b, c } = await joined(t, 3)
  let changes = 0
  b.nodes.onChange(() => changes++)
  await a.nodes.leave()
  await settled(b.store, c.store)
  t.strictSame(b.events, [`gone ${a.nodes.self}`])
  t.strictSame(b.nodes.living(), [b.nodes.self, c.nodes.self])
  t.strictSame(
    [a, b, c].map(({ nodes }) => nodes.isLeader()),
    [false, true, false],
  )
  t.equal(changes, 1)
})

t.test('the slot of a node that is gone is free', async (t) => {
  const { space, a, b } = await joined(t, 2)
  await a.nodes.leave()
  const next = await openNode(t, space)
  await next.nodes.join()
  t.equal(next.nodes.slot(), 0)
  await settled(b.store)
  t.equal(b.nodes.isLeader(), false)
})

/** `former` is cut off, and starts again as `again`, which has not joined yet. */
async function startedAgain(t: Test) {
  const space = createSharedSpace()
  const idFile = join(t.testdir(), 'id')
  const [former, other] = [await openNode(t, space, { idFile }), await openNode(t, space)]
  await former.nodes.join()
  await other.nodes.join()
  former.store.cut()
  return { former, other, again: await openNode(t, space, { idFile }) }
}

t.test('a node that starts again says that its former self is gone', async (t) => {
  const { former, other, again } = await startedAgain(t)
  await again.nodes.join()
  await settled(other.store)
  t.equal(again.nodes.slot(), 0, 'its slot is free for it')
  for (const { events } of [again, other]) t.strictSame(events, [`gone ${former.nodes.self}`])
  t.strictSame(other.nodes.living(), [again.nodes.self, other.nodes.self])
})

t.test('a node that starts again while the others bury its former self joins all the same', async (t) => {
  const { other, again } = await startedAgain(t)
  // `again` joins before it knows that its former self was deleted.
  await Promise.all([other.store.commit([{ del: 'member/00' }]), again.nodes.join()])
  await settled(again.store, other.store)
  t.same(new Set(other.nodes.living()), new Set([again.nodes.self, other.nodes.self]))
  t.equal([again, other].filter(({ nodes }) => nodes.isLeader()).length, 1)
})

t.test('of two that die together both are gone for the one that is told of the first', async (t) => {
  const { a, b, c } = await joined(t, 3, { heartbeatMs })
  const seen: unknown[] = []
  c.nodes.onGone(() => seen.push([c.nodes.isLeader(), c.nodes.living()]))
  a.store.cut()
  b.store.cut()
  await until(() => c.events.length === 2)
  t.strictSame(
    seen,
    [1, 2].map(() => [true, [c.nodes.self]]),
  )
})

t.test('of two that die together one starts again: the other one is gone all the same', async (t) => {
  const { space, a, b, c } = await joined(t, 3, { heartbeatMs })
  const restarted = space.openFollowed(t)
  let last = c.nodes.living()
  c.nodes.onChange(() => {
    last = c.nodes.living()
  })
  c.travel({
    there: async () => {},
    // `c` has removed `a`, and has not removed `b` yet. Now the restarted `b` removes its own former id.
    async back() {
      if ((await c.store.get('member/00')) || !(await c.store.get('member/01'))) return
      await restarted.commit([{ del: 'member/01' }])
    },
  })
  a.store.cut()
  b.store.cut()
  await until(() => c.events.length === 2)
  t.strictSame(c.events.sort(), [a, b].map(({ nodes }) => `gone ${nodes.self}`).sort())
  t.strictSame(last, [c.nodes.self])
})

t.test('a node that gives a sign while another one is removed stays', async (t) => {
  const { a, b, c } = await joined(t, 3, { heartbeatMs })
  let signs = 0
  c.store.onTold('alive', () => signs++)
  let isBack = false
  c.travel({
    there: async () => {},
    async back() {
      if (isBack || (await c.store.get('member/00'))) return
      isBack = true
      b.store.restore()
      const before = signs
      await until(() => signs > before)
    },
  })
  a.store.cut()
  b.store.cut()
  await until(() => isBack && c.events.length > 0)
  const before = signs
  await until(() => signs > before + 3)
  t.strictSame(c.events, [`gone ${a.nodes.self}`])
})

t.test('a node that learns late that its signs were taken goes on giving them', async (t) => {
  const { a, b } = await joined(t, 2, { heartbeatMs })
  let signs = 0
  b.store.onTold('alive', () => signs++)
  a.store.lag()
  await until(() => signs > 20 || !b.nodes.isLiving(a.nodes.self))
  t.ok(b.nodes.isLiving(a.nodes.self))
  a.store.restore()
})

t.test('there is room for so many nodes', async (t) => {
  t.testdir()
  const space = createSharedSpace()
  const store = space.openFollowed(t)
  await store.commit(
    Array.from({ length: maxNodes }, (_, slot) => ({
      put: `member/${String(slot).padStart(2, '0')}`,
      value: JSON.stringify({ node: `${slot}`, name: '', number: 1 }),
    })),
  )
  const late = await openNode(t, space)
  await t.rejects(late.nodes.join(), { message: /64 nodes/ })
})

t.test('a silent node is buried by the others, and comes back when it hears of it', async (t) => {
  const { a, b, c } = await joined(t, 3, { heartbeatMs })
  const { self } = a.nodes
  a.store.cut()
  await until(() => !b.nodes.isLiving(self) && !c.nodes.isLiving(self))
  t.strictSame([b.events, c.events], [[`gone ${self}`], [`gone ${self}`]], 'once')
  t.equal(b.nodes.isLeader(), true)
  a.store.restore()
  await until(() => a.events.length > 0 && b.nodes.isLiving(self) && c.nodes.isLiving(self))
  t.strictSame(a.events, ['return'], 'once')
  t.equal(new Set([a, b, c].map(({ nodes }) => nodes.slot())).size, 3)
  t.equal([a, b, c].filter(({ nodes }) => nodes.isLeader()).length, 1)
})

t.test('a slot that was given away meanwhile stays with whoever has it', async (t) => {
  const { space, a, b } = await joined(t, 2, { heartbeatMs })
  a.store.cut()
  await until(() => !b.nodes.isLiving(a.nodes.self))
  const next = await openNode(t, space, { heartbeatMs })
  await next.nodes.join()
  t.equal(next.nodes.slot(), 0)
  a.store.restore()
  await until(() => a.events.length > 0)
  t.equal(a.nodes.slot(), 2)
  t.equal(a.nodes.isLeader(), false)
})

t.test('a store that nobody reaches makes nobody dead', async (t) => {
  const { all, a, b } = await joined(t, 3, { heartbeatMs })
  let beats = 0
  b.store.onTold('alive', () => beats++)
  for (const { store } of all) store.cut()
  await until(() => all.every(({ missedBeats }) => missedBeats() > 20))
  for (const { store } of all) store.restore()
  await until(() => beats > 20)
  t.strictSame(
    all.flatMap(({ events }) => events),
    [],
  )
  t.equal(a.nodes.isLeader(), true)
})

t.test('a node that writes much over a slow network is not taken for dead', async (t) => {
  t.testdir()
  const space = createSharedSpace()
  const b = await openNode(t, space, { heartbeatMs })
  await b.nodes.join()
  const a = await openNode(t, space, { heartbeatMs })
  await a.nodes.join()
  let beats = 0
  let isOver = false
  a.store.onTold('alive', () => beats++)
  const pass = (count: number) => {
    const end = beats + count
    return until(() => beats >= end || isOver)
  }
  a.travel({ there: () => pass(1), back: () => pass(2) })
  while (beats < 60) await a.commit([{ tell: 'work', value: '' }])
  isOver = true
  t.strictSame([a.events, b.events], [[], []])
})

t.test('a node buried while it starts to leave does not come back', async (t) => {
  const { a, b } = await joined(t, 2)
  const burying = b.store.commit([{ del: 'member/00' }])
  await Promise.all([burying, a.nodes.leave()])
  await settled(a.store, b.store)
  await settled(b.store)
  t.strictSame(a.events, [])
  t.equal(await b.store.get('member/00'), undefined)
})

t.test('a node that is slow to come back does it once', async (t) => {
  const { a, b } = await joined(t, 2, { heartbeatMs })
  let beats = 0
  const release = a.hold()
  a.store.onTold('alive', () => beats++)
  await b.store.commit([{ del: 'member/00' }])
  await until(() => beats > 5)
  release()
  await until(() => a.nodes.isLiving(a.nodes.self))
  beats = 0
  await until(() => beats > 5)
  t.strictSame(a.events, ['return'])
})

t.test('a node that leaves while it comes back, and finds its slot taken, stays away', async (t) => {
  const { space, a, b } = await joined(t, 2)
  const release = a.hold()
  await b.store.commit([{ del: 'member/00' }])
  await settled(a.store)
  const next = await openNode(t, space)
  await next.nodes.join()
  t.equal(next.nodes.slot(), 0)
  await settled(a.store)
  const leaving = a.nodes.leave()
  release()
  await leaving
  for (let round = 0; round < 3; round++) await settled(a.store, b.store)
  t.equal(JSON.parse(String(await b.store.get('member/00'))).node, next.nodes.self)
  t.equal(await b.store.get('member/02'), undefined)
  t.strictSame(a.events, [])
})

t.test('a node alone is all there is', async (t) => {
  const only = createOnlyNode('host:1')
  t.equal(only.isLeader(), true)
  t.strictSame(only.living(), [only.self])
  t.equal(only.isLiving(only.self), true)
  t.equal(only.nameOf(only.self), 'host:1')
})

t.test(
  'a node that was taken for dead writes nothing before it has caught up and joined again',
  async (t) => {
    const { a, b } = await joined(t, 2)
    await b.store.commit([{ del: 'member/00' }, { put: 'state/x', value: 'of b' }])
    await t.rejects(a.store.commit([{ put: 'state/x', value: 'old' }]), { name: 'Fenced' })
    await until(() => a.events.includes('return'))
    t.strictSame(a.heard, ['of b'], 'it has heard what the others did')
    await a.store.commit([{ put: 'state/y', value: 'of a' }])
    t.equal(String(await b.store.get('state/x')), 'of b')
  },
)
