import { EventEmitter, once } from 'node:events'
import pino from 'pino'
import t, { type Test } from 'tap'
import { createAttempts } from '../../../../delivery/attempts.ts'
import { slots } from '../../../../delivery/queue/limits.ts'
import type { WorkItem } from '../../../../delivery/queue/work-item.ts'
import { createLeases } from '../../../../delivery/runner/leases.ts'
import { createRunner } from '../../../../delivery/runner/runner.ts'
import type { AttemptOutcome } from '../../../../delivery/target.ts'
import { type Worth, waitOf } from '../../../../delivery/worth/worth.ts'
import { createCalls } from '../../../../store/nodes/calls.ts'
import { createOnlyNode, type Nodes } from '../../../../store/nodes/nodes.ts'
import type { Change } from '../../../../store/store.ts'
import { createMetrics } from '../../../../telemetry/metrics.ts'
import { hour, openQueues } from '../../../delivery/open-queues.ts'

// The tests mostly wait, so several run at the same time.
t.jobs = 4

const answers = {
  ok: { result: 'acknowledged', status: 200, reason: null },
  refused: { result: 'refused', status: 422, reason: 'answered 422' },
  failed: { result: 'failed', status: 500, reason: 'answered 500' },
  gone: { result: 'gone', status: 410, reason: 'answered 410' },
} satisfies Record<string, AttemptOutcome>

/** Starts a runner with queues in memory. `answer` returns the outcome of each delivery. */
async function startRunner(
  t: Test,
  answer: (item: WorkItem, queue: string, signal: AbortSignal) => AttemptOutcome | Promise<AttemptOutcome>,
  prepare: (one: Awaited<ReturnType<typeof openQueues>>) => Promise<unknown> = async () => undefined,
  nodes: Nodes = createOnlyNode('test'),
  ownerOf = (queue: string) => queue,
  wants: Worth & { lanes?: number; isOwnDriver?: boolean } = {},
) {
  const one = await openQueues({ now: Date.now() })
  await prepare(one)
  const { memory, queues } = one
  const events = new EventEmitter()
  const delivered: string[] = []
  const removed = new Set<string>()
  const silent = new Set<string>()
  const closed = new Set<string>()
  /** Ids of events that are not worth delivering any more. */
  const stale = new Set<string>()
  const attempts = createAttempts(memory.store)
  const calls = createCalls({ store: memory.store, nodes })
  const log = pino({ level: 'silent' })
  const leases = await createLeases({ store: memory.store, nodes, calls, log })
  let behind = 0
  const runner = createRunner({
    queues,
    leases,
    attempts,
    log,
    metrics: createMetrics(),
    isStale: ({ messageId }) => stale.has(messageId),
    waitOf(item, target) {
      const { now } = one.time
      return waitOf(item, target, { now, steady: now, elapsed: performance.now() })
    },
    targetOf(queue) {
      if (removed.has(queue)) return 'gone'
      if (closed.has(queue)) return { closed: 'retired' }
      if (silent.has(queue)) return undefined
      return {
        endpoint: queue,
        owner: ownerOf(queue),
        ...wants,
        async deliver(item, _body, signal) {
          delivered.push(item.messageId)
          events.emit('delivered')
          return answer(item, queue, signal)
        },
      }
    },
    async onGone(queue) {
      silent.add(queue)
      await queues.giveUpAll(queue, 'gone')
      return true
    },
    noted: () => [],
    onRecovered: () => undefined,
    slots,
    clock: () => Date.now() - behind,
    random: () => 0,
  })
  runner.start()
  t.teardown(() => runner.stop())
  return {
    ...one,
    runner,
    attempts,
    delivered,
    removed,
    silent,
    closed,
    stale,
    setBack(ms: number): void {
      behind = ms
    },
    /** Resolves when the runner has begun `count` attempts in all. */
    async tried(count: number): Promise<void> {
      while (delivered.length < count) await once(events, 'delivered')
    },
    /** Resolves when the queue has no attempt under way. */
    async rest(name = 'a'): Promise<void> {
      for (;;) {
        const { state, nextTry } = runner.stateOf(name)
        if (state === 'idle' || (state === 'retrying' && nextTry !== null)) return
        await new Promise((resolve) => setImmediate(resolve))
      }
    },
  }
}

t.test('in order, one at a time, and beside each other', async (t) => {
  const busy: Record<string, number> = { a: 0, b: 0 }
  const order: Record<string, string[]> = { a: [], b: [] }
  const one = await startRunner(t, async ({ messageId }, queue) => {
    t.equal(busy[queue], 0)
    busy[queue] = 1
    order[queue]?.push(messageId)
    await new Promise((resolve) => setImmediate(resolve))
    busy[queue] = 0
    return answers.ok
  })
  await Promise.all(['1', '2', '3', '4'].map((id) => one.append(id, 'a', 'b')))
  await one.tried(8)
  t.same(order, { a: ['1', '2', '3', '4'], b: ['1', '2', '3', '4'] })
})

t.test('whatever a subscription leaves on its way, its removal leaves nothing', async (t) => {
  for (const outcome of [answers.ok, answers.failed, answers.gone]) {
    let proceed = () => {}
    const held = new Promise<void>((resolve) => {
      proceed = resolve
    })
    const one = await startRunner(t, async () => {
      await held
      return outcome
    })
    await one.append('1', 'a')
    await one.tried(1)
    one.removed.add('a')
    await one.queues.drop('a', await one.attempts.drop('a'))
    proceed()
    await one.rest()
    await one.runner.stop()
    await one.queues.tidy(() => false)
    one.trim()
    const left = [...one.memory.entries.keys()].filter((key) => !key.startsWith('work-seen/'))
    t.same(left, [], outcome.result)
  }
})

t.test('who asks for a try during an attempt that then fails gets one at once', async (t) => {
  let fail = () => {}
  const failing = new Promise<AttemptOutcome>((resolve) => {
    fail = () => resolve({ ...answers.failed, retryAfterMs: hour })
  })
  const one = await startRunner(t, () => (one.delivered.length > 1 ? answers.ok : failing))
  await one.append('1', 'a')
  await one.tried(1)
  one.runner.retryNow('a')
  fail()
  await one.tried(2)
  while (one.queues.names().length > 0) await new Promise((resolve) => setImmediate(resolve))
  t.same(one.delivered, ['1', '1'])
})

t.test('a queue whose subscription is gone is dropped', async (t) => {
  const one = await startRunner(t, () => answers.ok)
  one.removed.add('a')
  await one.append('1', 'a')
  while (one.queues.names().length > 0) await new Promise((resolve) => setImmediate(resolve))
  t.same([one.delivered, one.memory.keys('work/')], [[], []])
})

t.test('a queue whose subscription is gone is dropped also if only dead letters are left', async (t) => {
  const one = await startRunner(
    t,
    () => answers.ok,
    async ({ append, queues, head }) => {
      await append('1', 'a')
      await queues.giveUp('a', [head('a')], 'no reason')
    },
  )
  one.removed.add('a')
  one.runner.retryNow('a')
  while (one.queues.names().length > 0) await new Promise((resolve) => setImmediate(resolve))
  t.same([one.delivered, one.memory.keys('work-dead/')], [[], []])
})

t.test('an acknowledgement counts once the store takes it, and is not asked for again', async (t) => {
  let refusals = 0
  const one = await startRunner(t, () => answers.ok)
  one.memory.judge((changes) => {
    const isOutcome = changes.some((change: Change) => 'put' in change && change.put.startsWith('attempt/'))
    return isOutcome && refusals++ === 0 ? 'refused' : 'stored'
  })
  await one.append('1', 'a')
  await one.append('2', 'a')
  await one.tried(2)
  t.same(one.delivered, ['1', '2'])
})

t.test('what stepped aside does not hold up the line', async (t) => {
  const one = await startRunner(
    t,
    ({ messageId }) => (messageId.startsWith('poison') ? answers.refused : answers.ok),
    async ({ append, queues, time, head }) => {
      for (const id of ['poison 1', 'poison 2', 'poison 3']) {
        await append(id, 'a')
        await queues.setAside('a', head('a'), time.now - 1)
      }
      for (const id of ['1', '2', '3']) await append(id, 'a')
    },
  )
  await one.tried(6)
  t.same(one.delivered, ['poison 1', '1', 'poison 2', '2', 'poison 3', '3'])
})

/** The first message was refused four times. After the fifth refusal, the message steps aside. */
async function nearlyTooOften({ append, queues, head }: Awaited<ReturnType<typeof openQueues>>) {
  for (const id of ['poison', '1', '2']) await append(id, 'a')
  const attempt = { messageId: 'poison', time: '', status: 422, duration: 1, reason: 'answered 422' }
  for (let count = 0; count < 4; count++) await queues.postpone('a', head('a'), attempt, { refused: true })
}

t.test('a message that is refused too often steps aside for those behind it', async (t) => {
  const answer = ({ messageId }: WorkItem) => (messageId === 'poison' ? answers.refused : answers.ok)
  const one = await startRunner(t, answer, nearlyTooOften)
  await one.tried(3)
  await one.rest()
  t.same(one.delivered, ['poison', '1', '2'])
  t.match(one.queues.lengthOf('a'), { pending: 1, aside: 1 })
  const until = one.queues.waiting('a').aside?.asideUntil ?? 0
  const nextTry = new Date(until).toISOString()
  t.match(one.runner.stateOf('a'), { state: 'retrying', failures: 0, nextTry, lastReason: 'answered 422' })
})

t.test('what a person asked for is exempt from the delay, also behind what waits for it', async (t) => {
  for (const wants of [{ delayMs: 300_000 }, { delayMs: 300_000, lanes: 8 }]) {
    const one = await startRunner(
      t,
      () => answers.ok,
      async ({ append, queues, head }) => {
        await append('letter', 'a')
        await queues.giveUp('a', [head('a')], 'no reason')
        for (const id of ['1', '2']) await append(id, 'a')
      },
      undefined,
      undefined,
      wants,
    )
    await one.rest()
    t.same(one.delivered, [])
    await one.queues.replay('a')
    await one.tried(1)
    await one.rest()
    t.same(one.delivered, ['letter'], 'and those before it keep their places')
    t.match(one.queues.lengthOf('a'), { pending: 2 })
  }
})

t.test('with maxAge a message that stepped aside waits for 15 s at most', async (t) => {
  const answer = ({ messageId }: WorkItem) => (messageId === 'poison' ? answers.refused : answers.ok)
  const one = await startRunner(t, answer, nearlyTooOften, undefined, undefined, { maxAge: 3_600 })
  await one.tried(3)
  await one.rest()
  t.ok((one.queues.waiting('a').aside?.asideUntil ?? Infinity) <= Date.now() + 15_000)
})

t.test('only the message that was refused steps aside, also when it goes meanwhile', async (t) => {
  const one = await startRunner(
    t,
    async ({ messageId }) => {
      if (messageId !== 'poison') return answers.ok
      // Give the message up after its last refusal, before the runner tries the next message.
      queueMicrotask(() => void one.queues.giveUp('a', [one.head('a')], 'too old'))
      return answers.refused
    },
    nearlyTooOften,
  )
  await one.tried(3)
  await one.rest()
  t.same(one.delivered, ['poison', '1', '2'], 'the others in their order')
  t.equal(one.queues.lengthOf('a').aside, 0)
})

t.test('a queue that fails is retrying also while it tries again', async (t) => {
  let proceed = () => {}
  const held = new Promise<void>((resolve) => {
    proceed = resolve
  })
  let nth = 0
  const one = await startRunner(t, async () => {
    if (++nth === 1) return answers.failed
    await held
    return answers.ok
  })
  await one.append('1', 'a')
  await one.tried(1)
  await one.rest()
  one.runner.retryNow('a')
  await one.tried(2)
  t.match(one.runner.stateOf('a'), { state: 'retrying', failures: 1, nextTry: null })
  proceed()
  await one.rest()
  t.match(one.runner.stateOf('a'), { state: 'idle', failures: 0 })
})

t.test('a queue that waits does not wait for a clock that was set back', async (t) => {
  let answer: AttemptOutcome = { ...answers.failed, retryAfterMs: 30_000 }
  const one = await startRunner(t, () => answer)
  await one.append('1', 'a')
  await one.tried(1)
  await one.rest()
  t.match(one.runner.stateOf('a'), { state: 'retrying', failures: 1 })
  answer = answers.ok
  one.setBack(24 * hour)
  await one.append('2', 'a')
  await one.tried(3)
  t.same(one.delivered, ['1', '1', '2'])
})

t.test('an absurd Retry-After is an hour', async (t) => {
  const one = await startRunner(t, () => ({ ...answers.failed, retryAfterMs: Number.MAX_SAFE_INTEGER }))
  await one.append('1', 'a')
  await one.tried(1)
  await one.rest()
  const { nextTry } = one.runner.stateOf('a')
  const inMs = Date.parse(nextTry ?? '') - Date.now()
  t.ok(inMs > 0.9 * hour && inMs <= hour, String(inMs))
})

t.test('gone: nothing is sent until somebody asks for it', async (t) => {
  let outcome: AttemptOutcome = answers.gone
  const one = await startRunner(t, () => outcome)
  await one.append('1', 'a')
  await one.append('2', 'a')
  await one.tried(1)
  while (one.queues.deadLetters('a').length < 2) await new Promise((resolve) => setImmediate(resolve))
  await one.append('3', 'a')
  outcome = answers.ok
  one.silent.delete('a')
  await one.queues.replay('a')
  one.runner.retryNow('a')
  await one.tried(4)
  t.same(one.delivered.slice(1), ['3', '1', '2'])
})

t.test('a queue that is closed sends nothing any more, and what waits is given up', async (t) => {
  let proceed = () => {}
  const held = new Promise<void>((resolve) => {
    proceed = resolve
  })
  const one = await startRunner(t, async () => {
    await held
    return answers.failed
  })
  for (const id of ['1', '2', '3']) await one.append(id, 'a')
  await one.tried(1)
  one.closed.add('a')
  one.runner.wakeAll()
  proceed()
  while (one.queues.deadLetters('a').length < 3) await new Promise((resolve) => setImmediate(resolve))
  await one.append('4', 'a')
  while (one.queues.deadLetters('a').length < 4) await new Promise((resolve) => setImmediate(resolve))
  const letters = one.queues.deadLetters('a').map(({ messageId, reason }) => [messageId, reason])
  t.same(
    letters,
    ['1', '2', '3', '4'].map((id) => [id, 'retired']),
  )
  t.same(one.delivered, ['1'])
  t.match(one.runner.stateOf('a'), { state: 'idle', failures: 0, nextTry: null })
})

t.test('a queue that is closed while it waits for a place sends nothing', async (t) => {
  let proceed = () => {}
  const held = new Promise<AttemptOutcome>((resolve) => {
    proceed = () => resolve(answers.ok)
  })
  const one = await startRunner(
    t,
    () => held,
    undefined,
    undefined,
    () => 'one owner',
  )
  const names = Array.from({ length: slots.healthy.total }, (_, index) => `slow ${index}`)
  await one.append('1', ...names)
  await one.tried(names.length / 2)
  for (const name of names) one.closed.add(name)
  proceed()
  const isDone = () => names.every((name) => one.queues.lengthOf(name).pending === 0)
  while (!isDone()) await new Promise((resolve) => setImmediate(resolve))
  t.equal(one.delivered.length, names.length / 2)
  t.equal(names.filter((name) => one.queues.deadLetters(name).length === 1).length, names.length / 2)
})

t.test('the slow queues of one owner do not keep those of another waiting', async (t) => {
  const one = await startRunner(
    t,
    (_item, queue, signal) =>
      queue === 'healthy'
        ? answers.ok
        : new Promise((resolve) => {
            signal.addEventListener('abort', () => resolve(answers.ok), { once: true })
          }),
    undefined,
    undefined,
    (queue) => queue.replace(/ .*/, ''),
  )
  await one.append('1', ...Array.from({ length: 600 }, (_, index) => `slow ${index}`))
  await one.tried(slots.healthy.total / 2)
  await one.append('2', 'healthy')
  await one.tried(slots.healthy.total / 2 + 1)
  t.equal(one.delivered.at(-1), '2')
})

t.test('deliveries of one owner that are about to begin do not hold up those of another', async (t) => {
  const one = await startRunner(
    t,
    () => answers.ok,
    undefined,
    undefined,
    (queue) => queue.replace(/ .*/, ''),
  )
  const busy = Array.from({ length: 200 }, (_, index) => `busy ${index}`)
  await Promise.all([one.append('1', ...busy), one.append('2', 'healthy')])
  await one.tried(busy.length + 1)
  t.ok(one.delivered.indexOf('2') < 20, `it was delivery ${one.delivered.indexOf('2')}`)
})

t.test('the first of many failing queues do not keep a healthy one waiting', async (t) => {
  const one = await startRunner(t, (_item, queue, signal) => {
    if (queue === 'healthy') return answers.ok
    // The target never answers. The attempt ends only when the runner stops it.
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve(answers.failed), { once: true })
    })
  })
  await one.append('1', ...Array.from({ length: 300 }, (_, index) => `dead ${index}`))
  await one.tried(300)
  await one.append('2', 'healthy')
  await one.tried(301)
  t.equal(one.delivered.at(-1), '2')
})

t.test('a stop ends what never answers, and what waits for its turn', async (t) => {
  const one = await startRunner(t, (_item, _queue, signal) => {
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve(answers.failed), { once: true })
    })
  })
  await one.append('1', ...Array.from({ length: 600 }, (_, index) => `dead ${index}`))
  await one.tried(512)
  await one.runner.stop()
  t.equal(one.delivered.length, 512)
  t.equal((await one.reopen()).queues.names().length, 600, 'all are still owed')
  await one.append('2', 'dead 0')
  t.equal(one.delivered.length, 512, 'nothing starts any more')
})

/** A runner whose driver might end the hub: it is a program of the operator. */
const startOwn = (...[t, answer, prepare]: Parameters<typeof startRunner>) =>
  startRunner(t, answer, prepare, undefined, undefined, { isOwnDriver: true })

t.test('an attempt that the hub did not survive counts as refused', async (t) => {
  const one = await startOwn(
    t,
    () => answers.ok,
    async (before) => {
      await before.append('1', 'a')
      await before.queues.noteAttempt('a', before.head('a'), Date.now())
    },
  )
  await one.tried(1)
  t.match(one.head('a'), { refusals: 1, attempts: [{ reason: 'the hub ended during the attempt' }] })
})

t.test('an attempt that a stop has ended does not count', async (t) => {
  const one = await startOwn(t, (_item, _queue, signal) => {
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve(answers.failed), { once: true })
    })
  })
  await one.append('1', 'a')
  await one.tried(1)
  t.ok(one.head('a').begun)
  await one.runner.stop()
  t.match((await one.reopen()).head('a'), { begun: undefined, tries: 0 })
})

t.test('what is acknowledged in the last moment is not sent again', async (t) => {
  const one = await startRunner(t, (_item, _queue, signal) => {
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve(answers.ok), { once: true })
    })
  })
  await one.append('1', 'a')
  await one.tried(1)
  await one.runner.stop()
  t.equal(one.queues.lengthOf('a').pending, 0)
})

t.test('the queues of two nodes that go in the same moment go on here', async (t) => {
  const living = ['first', 'second', 'here']
  let changed = () => {}
  const nodes: Nodes = {
    ...createOnlyNode('here'),
    self: 'here',
    isShared: true,
    isLiving: (node) => living.includes(node),
    living: () => living,
    onChange: (listener) => {
      changed = listener
    },
  }
  const names = Array.from({ length: 30 }, (_, index) => `queue ${index}`)
  const one = await startRunner(
    t,
    () => answers.ok,
    ({ append }) => append('1', ...names),
    nodes,
  )
  // Both nodes leave at the same moment, as when one read of the store's log reports both.
  for (const left of ['first', 'second']) {
    living.splice(living.indexOf(left), 1)
    changed()
  }
  await one.tried(names.length)
  t.equal(one.delivered.length, names.length)
})

t.test('a node that has lost touch with the others delivers nothing, until it has it again', async (t) => {
  let isInTouch = true
  const listeners: ((isInTouch: boolean) => void)[] = []
  const touch = (is: boolean) => {
    isInTouch = is
    for (const listener of listeners) listener(is)
  }
  const nodes: Nodes = {
    ...createOnlyNode('here'),
    self: 'here',
    isShared: true,
    isLiving: (node) => node === 'here',
    living: () => ['here'],
    isInTouch: () => isInTouch,
    onTouch: (listener) => listeners.push(listener),
  }
  let hangs = true
  const one = await startRunner(
    t,
    (_item, _queue, signal) => {
      if (!hangs) return answers.ok
      return new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve(answers.failed), { once: true })
      })
    },
    undefined,
    nodes,
  )
  await one.append('1', 'a')
  await one.tried(1)
  touch(false)
  await one.rest()
  hangs = false
  await one.append('2', 'b')
  one.runner.retryNow('a')
  await one.rest()
  t.same(one.delivered, ['1'], 'what was under way was cut, and nothing began')
  t.match(one.queues.waiting('a').head, { tries: 0 }, 'and does not count')
  touch(true)
  await one.tried(3)
  await one.rest()
  t.same(one.delivered.toSorted(), ['1', '1', '2'])
})

t.test('many items that are not worth it any more go in few commits, and no payload is read', async (t) => {
  let isAway = true
  const ids = Array.from({ length: 900 }, (_, index) => String(index))
  const one = await startRunner(
    t,
    () => (isAway ? answers.failed : answers.ok),
    undefined,
    undefined,
    undefined,
    { maxAge: 60 },
  )
  for (const id of ids) await one.append(id, 'a')
  await one.rest()
  isAway = false
  for (const id of ids.slice(0, -2)) one.stale.add(id)
  const before = one.delivered.length
  let commits = 0
  one.memory.judge(() => {
    commits++
    return 'stored'
  })
  one.runner.retryNow('a')
  await one.tried(before + 2)
  await one.rest()
  t.same(one.delivered.slice(before), ids.slice(-2))
  t.match(one.queues.lengthOf('a'), { pending: 0, stale: 898 })
  t.ok(commits < 10, `${commits} commits`)
  const lines = (await one.attempts.list('a')).filter(({ stale }) => stale)
  t.match(lines, [{ stale: { livestreamId: null, count: 898 } }], 'one line')
})

t.test('a delayed item waits for its time, the order stays, and a replay does not wait', async (t) => {
  const delayMs = 700
  const at: number[] = []
  const one = await startRunner(
    t,
    () => {
      at.push(performance.now())
      return answers.ok
    },
    undefined,
    undefined,
    undefined,
    { delayMs },
  )
  const begin = performance.now()
  await one.append('1', 'a')
  const first = performance.now()
  await one.append('2', 'a')
  t.same(one.runner.stuckQueues(), [], 'it does not stand still')
  await one.tried(2)
  t.same(one.delivered, ['1', '2'])
  t.ok((at[0] ?? 0) - begin >= delayMs && (at[1] ?? 0) - first >= delayMs)
  await one.rest()
  await one.append('3', 'b')
  await one.queues.giveUp('b', [one.head('b')], 'for the test')
  const replayed = performance.now()
  await one.queues.replay('b')
  await one.tried(3)
  t.ok((at[2] ?? 0) - replayed < delayMs)
})

t.test('lanes: livestreams side by side, one of them in order, and at most so many', async (t) => {
  const under = new Map<string, string[]>()
  let most = 0
  const hanging = new Map<string, (outcome: AttemptOutcome) => void>()
  const problems: string[] = []
  const one = await startRunner(
    t,
    async ({ messageId, element }) => {
      const ids = Object.keys(element?.livestreams ?? {})
      for (const [other, theirs] of under)
        if (ids.length === 0 || theirs.length === 0 || ids.some((id) => theirs.includes(id)))
          problems.push(`${messageId} beside ${other}`)
      under.set(messageId, ids)
      most = Math.max(most, under.size)
      const outcome = messageId.startsWith('hangs')
        ? await new Promise<AttemptOutcome>((resolve) => hanging.set(messageId, resolve))
        : await new Promise<AttemptOutcome>((resolve) => setImmediate(() => resolve(answers.ok)))
      under.delete(messageId)
      return outcome
    },
    undefined,
    undefined,
    undefined,
    { lanes: 3 },
  )
  const append = (id: string, ...livestreams: string[]) => one.appendFor(id, 'a', livestreams)
  await append('hangs 0', 'A')
  await append('1', 'A')
  await append('2', 'B')
  await append('3', 'B', 'A')
  await append('4', 'B')
  await append('5', 'C')
  for (const id of ['D', 'E', 'F', 'G']) await append(id, id)
  await one.tried(7)
  t.same(one.delivered.filter((id) => ['hangs 0', '2', '5'].includes(id)).sort(), ['2', '5', 'hangs 0'])
  t.same(
    one.delivered.filter((id) => ['1', '3', '4'].includes(id)),
    [],
    'one that hangs holds back itself, and what is for it and others',
  )
  hanging.get('hangs 0')?.(answers.ok)
  await one.tried(10)
  t.same(one.delivered.slice(-3), ['1', '3', '4'], 'in order')
  await append('hangs x', 'X')
  await append('hangs y', 'Y')
  await append('hangs z', 'Z')
  await append('w', 'W')
  await one.tried(13)
  t.notOk(one.delivered.includes('w'), 'three are under way')
  t.same(one.runner.stuckQueues(), [])
  hanging.get('hangs y')?.(answers.ok)
  await one.tried(14)
  t.equal(one.delivered.at(-1), 'w')
  // An item whose livestreams nobody knows waits for all, and all wait for it.
  await append('unknown')
  await append('after', 'V')
  hanging.get('hangs x')?.(answers.failed)
  await one.rest()
  t.notOk(one.delivered.includes('unknown'))
  hanging.get('hangs z')?.(answers.ok)
  await one.tried(15)
  hanging.get('hangs x')?.(answers.ok)
  await one.tried(17)
  t.same(one.delivered.slice(-2), ['unknown', 'after'])
  t.same(problems, [])
  t.equal(most, 3)
})
