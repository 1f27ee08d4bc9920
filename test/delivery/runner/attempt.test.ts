import pino from 'pino'
import t from 'tap'
import type { WorkItem } from '../../../delivery/queue/work-item.ts'
import { createAttempt } from '../../../delivery/runner/attempt.ts'
import { createQueueRun } from '../../../delivery/runner/queue-run.ts'
import type { AttemptOutcome, Target, TargetOf } from '../../../delivery/target.ts'
import { createMetrics } from '../../../telemetry/metrics.ts'

/* What changes before an attempt begins, or while it is under way. */

const acknowledged: AttemptOutcome = { result: 'acknowledged', status: 200, reason: null }

/** How things stand for a queue with one item. A test changes them at some moment. */
interface State {
  holds: boolean
  target: ReturnType<TargetOf>
  head: WorkItem
  isStale: boolean
}

/** A moment of the attempt. `waits`: another queue has the only slot. */
type Moment = 'waits' | 'reads' | 'notes' | 'delivers'

/** Tries the item of a queue once, and calls `change` at the moment `at`. Resolves with what was done. */
async function tryOnce(at: Moment, change: (state: State) => void, isOwnDriver = false) {
  const done: string[] = []
  const happens = (moment: Moment) => {
    if (moment === at) change(state)
  }
  const hook: Target = {
    endpoint: 'hook',
    owner: 'hook',
    isOwnDriver,
    async deliver() {
      done.push('delivered')
      happens('delivers')
      return acknowledged
    },
  }
  let endOther = () => {}
  const others = new Promise<AttemptOutcome>((resolve) => {
    endOther = () => resolve(acknowledged)
  })
  const other: Target = { endpoint: 'other', owner: 'other', deliver: () => others }
  const state: State = { holds: true, target: hook, head: itemOf(1), isStale: false }
  const slots = { total: 1, perEndpoint: 1 }
  const attempt = createAttempt({
    queues: {
      async payload(name) {
        if (name === 'hook') happens('reads')
        return Buffer.from('payload')
      },
      giveUp: async () => undefined,
      async noteAttempt() {
        done.push('noted')
        happens('notes')
      },
      forgetAttempt: async () => void done.push('forgotten'),
    },
    leases: { holds: (name) => name === 'other' || state.holds },
    targetOf: (name) => (name === 'other' ? other : state.target),
    isStale: (_item, target) => target === hook && state.isStale,
    waitOf: () => 0,
    waitingOf: () => ({ head: state.head, second: undefined, due: undefined, aside: undefined }),
    slots: { healthy: slots, failing: slots },
    clock: Date.now,
    log: pino({ level: 'silent' }),
    metrics: createMetrics(),
    stopping: new AbortController().signal,
    cutting: () => new AbortController().signal,
  })
  const begin = (name: string, target: Target) =>
    attempt(name, createQueueRun(''), { item: itemOf(1) }, target)
  const first = begin('other', other)
  const waiting = begin('hook', hook)
  happens('waits')
  endOther()
  await first
  const attempted = await waiting
  return [...done, ...(attempted ? [attempted.outcome.result] : [])]
}

const isLost = (state: State) => void Object.assign(state, { holds: false })
const isRemoved = (state: State) => void Object.assign(state, { target: 'gone' })

t.test('an item is delivered where nothing changes', async (t) => {
  t.same(await tryOnce('waits', () => {}), ['delivered', 'acknowledged'])
})

const changes: Record<string, (state: State) => void> = {
  'the lease of its queue is lost': isLost,
  'its webhook is removed': isRemoved,
  'its webhook is paused': (state) => void Object.assign(state, { target: undefined }),
  'its webhook is closed': (state) => void Object.assign(state, { target: { closed: 'retired' } }),
  'another item comes first': (state) => void Object.assign(state, { head: itemOf(2) }),
  'its event is not worth delivering any more': (state) => void Object.assign(state, { isStale: true }),
}

for (const [what, change] of Object.entries(changes)) {
  t.test(`an item is not delivered if ${what} while it waits for a slot`, async (t) => {
    t.same(await tryOnce('waits', change), [])
  })
}

t.test('nor if the lease is lost while its content is read', async (t) => {
  t.same(await tryOnce('reads', isLost), [])
  t.same(await tryOnce('reads', isLost, true), [], 'and an attempt of an own driver is not noted')
})

t.test('an own driver does not get it if the lease is lost while the attempt is noted', async (t) => {
  t.same(await tryOnce('notes', isLost, true), ['noted', 'forgotten'])
})

t.test('of a webhook that is removed during an attempt nothing is stored any more', async (t) => {
  t.same(await tryOnce('delivers', isRemoved), ['delivered'])
})

function itemOf(sequence: number): WorkItem {
  const counts = { tries: 0, refusals: 0, attempts: [] }
  return { sequence, messageId: `${sequence}`, position: 1, details: {}, seen: 0, enqueuedAt: 0, ...counts }
}
