import t from 'tap'
import { createQueueList } from '../../delivery/queue-list.ts'
import type { QueueRunState } from '../../delivery/runner/queue-run.ts'

const now = Date.parse('2026-03-01T12:00:00Z')
const ago = (seconds: number) => new Date(now - seconds * 1000).toISOString()

/** A list with one webhook, in this state. */
function listOf(state: QueueRunState['state'], oldest: string | null, resting: object = {}, delayMs = 0) {
  const subscription = { name: 'slow', url: 'https://slow.example/', contact: 'a@b.example', ...resting }
  const pending = oldest === null ? 0 : 248
  return createQueueList({
    calls: { serve: () => {}, answersOfOthers: async () => [] } as never,
    queues: {
      names: () => ['slow'].values(),
      lengthOf: () => ({ pending, aside: 0, deadLetters: 0, oldest, dropped: 0, stale: 0 }),
      dropped: () => [],
      stale: () => [],
    } as never,
    runner: {
      states: () => [],
      stateOf: () => ({ state, failures: 0, nextTry: null, lastReason: null }),
    },
    plugins: { queues: [], states: () => [] },
    isOwn: () => true,
    subscriptions: { list: () => [subscription], find: () => subscription } as never,
    push: { whyClosed: () => undefined },
    delayOf: () => delayMs,
    clock: () => now,
  })
}

t.test('a queue whose oldest item has waited for over a minute is behind', async (t) => {
  for (const [state, oldest, shown, behind] of [
    ['idle', null, 'idle', 0],
    ['delivering', ago(60), 'delivering', 0],
    ['delivering', ago(61), 'behind', 1],
    ['idle', ago(400), 'behind', 1],
    ['retrying', ago(400), 'retrying', 1],
  ] as const) {
    const list = listOf(state, oldest)
    t.match(await list.list(), [{ state: shown }], `${state}, ${oldest}`)
    t.equal(list.totals().behind, behind, `${state}, ${oldest}`)
  }
})

t.test('a queue whose events wait for their time is not behind', async (t) => {
  const waiting = listOf('idle', ago(100), {}, 60_000)
  t.match(await waiting.list(), [{ state: 'idle' }])
  t.match(waiting.totals(), { behind: 0, oldest: Date.parse(ago(40)) })
  t.match(await listOf('idle', ago(121), {}, 60_000).list(), [{ state: 'behind' }])
})

t.test('a queue from which nothing is sent is not behind', async (t) => {
  const paused = listOf('idle', ago(400), { pausedAt: ago(500) })
  t.match(await paused.list(), [{ state: 'paused' }])
  t.match(paused.totals(), { behind: 0, oldest: undefined, pending: 248 })
})
