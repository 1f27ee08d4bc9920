import pino from 'pino'
import t from 'tap'
import { createAttempts } from '../../delivery/attempts.ts'
import { createReplays } from '../../delivery/replays.ts'
import { createSubscriptionQueues } from '../../delivery/subscription-queues.ts'
import { createTestMessages } from '../../delivery/test-messages.ts'
import { createStandings } from '../../delivery/webhook/standing.ts'
import { createPushSubscriptions } from '../../delivery/webhook/subscriptions.ts'
import { attempt, messagesAt, openQueues } from './open-queues.ts'

/* Operations of a webhook that need more than one commit, while the store refuses one of them. */

const institutionId = 'urn:org:institution:1'
const failed = { result: 'failed', status: 500, reason: 'answered 500' } as const

/** A webhook that is retrying, with one dead letter. */
async function openWebhook() {
  const one = await openQueues()
  const { memory, queues, append, head } = one
  const { store } = memory
  const clock = () => one.time.now
  const subscriptions = await createPushSubscriptions({ store, serviceAccount: 'a@b', clock })
  const attempts = createAttempts(store)
  const standings = await createStandings({ store, clock, isKnown: () => true })
  const added = await subscriptions.add({
    topicId: 'urn:org:permanent-livestream:1',
    institutionId,
    createdBy: 'u',
    url: 'https://hooks.example/',
    contact: 'a@b.example',
  })
  if (!added) throw new Error('not added')
  const { name } = added
  await append('dead', name)
  await queues.giveUp(name, [head(name)], 'refused too often')
  await append('waiting', name)
  await store.commit(standings.noted(name, failed, false))
  const retried: string[] = []
  const retry = (queue: string) => void retried.push(queue)
  const noOthers = { askOthers: async () => [] }
  const webhooks = createSubscriptionQueues({
    subscriptions,
    queues,
    attempts,
    standings,
    log: pino({ level: 'silent' }),
    calls: noOthers,
    beginnings: { look: () => undefined },
    runner: { retryNow: retry },
  })
  return { ...one, subscriptions, attempts, standings, webhooks, added, name, retried, retry }
}

t.test('a webhook whose removal the store refuses stays as it was', async (t) => {
  const { memory, webhooks, standings, added, name, subscriptions } = await openWebhook()
  memory.judge(() => 'refused')
  await t.rejects(webhooks.remove(institutionId, name), { message: 'disk full' })
  t.match(standings.of(added), { state: 'retrying', reason: 'answered 500' })
  t.match(subscriptions.find(name), { name })
})

t.test('a removal has happened with its first commit, and the node of the queue does the rest', async (t) => {
  const { memory, webhooks, queues, name, subscriptions, retried } = await openWebhook()
  memory.judge((changes) =>
    changes.some((change) => 'del' in change && isOfQueue(change.del)) ? 'refused' : 'stored',
  )
  t.equal(await webhooks.remove(institutionId, name), true)
  t.equal(subscriptions.find(name), undefined)
  t.equal(queues.lengthOf(name).pending, 1, 'the queue is still there')
  t.same(retried, [name])
})

t.test('a replay that fails half-way does not leave the queue standing still', async (t) => {
  const { memory, queues, name, journal, retry, retried, subscriptions } = await openWebhook()
  await subscriptions.disable(name)
  const replays = createReplays({
    find: subscriptions.find,
    enable: subscriptions.enable,
    queues,
    retry,
    earlierOf: async () => messagesAt(1),
    push: { whyNotSent: () => undefined },
  })
  memory.judge((changes) =>
    changes.some((change) => 'put' in change && isOfQueue(change.put)) ? 'refused' : 'stored',
  )
  await t.rejects(replays.replay(name), { message: 'disk full' })
  t.same(retried, [name], 'its webhook is enabled')
  journal.raiseFloor(9)
  await t.rejects(replays.replaySince(name, 0), { message: 'disk full' })
  t.same(retried, [name, name])
  await t.rejects(
    replays.replaySince(name, 0, () => Promise.reject(new Error('no audit'))),
    { message: 'no audit' },
  )
  t.same(retried, [name, name], 'nothing was changed')
})

t.test('an acknowledged test and the enabling of its webhook are one commit', async (t) => {
  const { memory, name, attempts, standings, subscriptions, retry } = await openWebhook()
  await subscriptions.disable(name)
  const tests = createTestMessages({
    store: memory.store,
    find: subscriptions.find,
    attempts,
    standings,
    retry,
    most: 1,
    push: { test: async () => ({ ...attempt('test', null), status: 200 }) },
    whyClosed: () => undefined,
    enable: (queue, alongside) => subscriptions.enable(queue, () => alongside),
  })
  let left = 1
  memory.judge(() => (left-- > 0 ? 'stored' : 'refused'))
  t.match(await tests.test(name), { messageId: 'test' })
  t.equal(subscriptions.find(name)?.disabledAt, undefined)
  t.equal(memory.keys('attempt/').length, 1)
  left = 1
  t.match(await tests.test(name), { messageId: 'test' }, 'also where it was enabled')
  t.equal(memory.keys('attempt/').length, 2)
})

function isOfQueue(key: string): boolean {
  return key.startsWith('work/') || key.startsWith('work-dead/')
}
