import t from 'tap'
import type { AttemptOutcome } from '../../../delivery/target.ts'
import { createStandings, goneMs } from '../../../delivery/webhook/standing.ts'
import type { Change } from '../../../store/store.ts'
import { createMemoryStore } from '../memory-store.ts'

const minute = 60_000
const name = 'de.org.hub.subscription.1'
const createdAt = '2026-06-01T11:00:00.000Z'
const subscription = {
  name,
  createdAt,
  topicId: 'urn:org:permanent-livestream:1',
  url: 'https://hooks.example/',
  contact: 'a@b.example',
  institutionId: 'urn:org:institution:1',
  serviceAccount: 'a@b',
  ackDeadlineSeconds: 20,
  retryPolicy: null,
  createdBy: 'u',
}
const answers = {
  ok: { result: 'acknowledged', status: 200, reason: null },
  refused: { result: 'refused', status: 422, reason: 'answered 422' },
  failed: { result: 'failed', status: 500, reason: 'answered 500' },
  silent: { result: 'failed', status: null, reason: 'no answer within 20 s' },
  gone: { result: 'gone', status: 410, reason: 'answered 410' },
} satisfies Record<string, AttemptOutcome>

async function open(memory = createMemoryStore(), time = { now: Date.parse('2026-06-01T12:00:00Z') }) {
  const { store } = memory
  const standings = await createStandings({ store, clock: () => time.now, isKnown: () => true })
  const commit = (changes: Change[]) => (changes.length > 0 ? store.commit(changes) : undefined)
  return {
    memory,
    time,
    standings,
    now: () => new Date(time.now).toISOString(),
    of: () => standings.of(subscription),
    /** Moves the clock on by `later` milliseconds, then notes this outcome of a delivery. */
    async came(answer: keyof typeof answers, later = minute, isAside = false): Promise<void> {
      time.now += later
      await commit(standings.noted(name, answers[answer], isAside))
    },
    async tested(status: number | null): Promise<void> {
      await commit(standings.tested(name, status))
    },
    reopen: () => open(memory.crashed(), time),
  }
}

t.test('a webhook is active, retrying, active again, and since when', async (t) => {
  const one = await open()
  t.same(one.of(), { state: 'active', since: createdAt, reason: null })
  await one.came('ok')
  t.same(one.memory.keys('push-standing/'), [], 'nothing is stored for one that works')
  await one.came('failed')
  const since = one.now()
  t.same(one.of(), { state: 'retrying', since, reason: 'answered 500' })
  await one.came('silent')
  t.same(one.of(), { state: 'retrying', since, reason: 'no answer within 20 s' })
  t.same((await one.reopen()).of(), one.of(), 'also after a restart')
  await one.came('refused', minute, true)
  t.match(one.of(), { state: 'retrying', since }, 'what stepped aside says nothing of the others')
  await one.came('ok')
  t.same(one.of(), { state: 'active', since: one.now(), reason: null })
  await one.came('refused', minute, true)
  t.match(one.of(), { state: 'active' })
})

t.test('a paused webhook is shown as disabled, whatever it answered', async (t) => {
  const one = await open()
  const pausedAt = '2026-06-01T11:30:00.000Z'
  const paused = { state: 'disabled', since: pausedAt, reason: 'paused by the operator' }
  t.same(one.standings.of({ ...subscription, pausedAt }), paused)
  await one.came('failed')
  t.same(one.standings.of({ ...subscription, pausedAt, disabledAt: createdAt }), paused)
  t.match(one.standings.of(subscription), { state: 'retrying' })
})

t.test('only an hour of 410 and nothing else is believed, over restarts', async (t) => {
  let one = await open()
  await one.came('gone')
  for (let minutes = 0; minutes < 60; minutes += 10) {
    t.notOk(one.standings.isGone(name), `${minutes} minutes`)
    one = await one.reopen()
    await one.came('gone', 10 * minute)
  }
  t.ok(one.standings.isGone(name))
  t.match(one.of(), { state: 'retrying', reason: 'answered 410' })
})

t.test('any other outcome begins the hour anew', async (t) => {
  const others: [string, (one: Awaited<ReturnType<typeof open>>) => Promise<void>][] = [
    ['an acknowledgement', (one) => one.came('ok')],
    ['another status', (one) => one.came('failed')],
    ['no answer', (one) => one.came('silent')],
    ['a refused message that had stepped aside', (one) => one.came('refused', minute, true)],
    ['an acknowledged test message', (one) => one.tested(200)],
    ['a test message without an answer', (one) => one.tested(null)],
  ]
  for (const [what, other] of others) {
    const one = await open()
    await one.came('gone')
    for (let times = 0; times < 5; times++) await one.came('gone', 10 * minute)
    await other(one)
    for (let times = 0; times < 6; times++) await one.came('gone', 10 * minute)
    t.notOk(one.standings.isGone(name), what)
    await one.came('gone', 10 * minute)
    t.ok(one.standings.isGone(name), what)
  }
})

t.test('a test message that is answered with 410 changes nothing', async (t) => {
  const one = await open()
  await one.came('gone')
  for (let times = 0; times < 6; times++) {
    await one.tested(410)
    await one.came('gone', 10 * minute)
  }
  t.ok(one.standings.isGone(name))
})

t.test('a clock that jumps ahead, or a hub that was down, makes no hour of two answers', async (t) => {
  const one = await open()
  await one.came('gone')
  await one.came('gone', 30 * 24 * goneMs)
  t.notOk(one.standings.isGone(name))
  await one.came('gone', -30 * 24 * goneMs)
  t.notOk(one.standings.isGone(name))
  for (let times = 0; times < 5; times++) await one.came('gone', 10 * minute)
  t.ok(one.standings.isGone(name), 'nor does a clock that is set back take any time away')
})

t.test('what is left of a subscription that was removed goes at the next start', async (t) => {
  const one = await open()
  await one.came('failed')
  const { store } = one.memory
  const again = await createStandings({ store, clock: Date.now, isKnown: () => false })
  await again.tidy()
  t.same(one.memory.keys('push-standing/'), [])
})
