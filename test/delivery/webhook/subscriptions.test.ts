import t from 'tap'
import { createPushSubscriptions } from '../../../delivery/webhook/subscriptions.ts'
import { createMemoryStore } from '../memory-store.ts'

const topicId = 'urn:org:permanent-livestream:1'
const institutionId = 'urn:org:institution:1'

async function open(memory = createMemoryStore()) {
  const { store } = memory
  const subscriptions = await createPushSubscriptions({ store, serviceAccount: 'a@b', clock: Date.now })
  return { memory, subscriptions }
}

async function openWithOne() {
  const one = await open()
  const added = await one.subscriptions.add({
    ...{ topicId, institutionId, url: 'https://hooks.example/', contact: 'a@b.example', createdBy: 'u' },
  })
  if (!added) throw new Error('not added')
  return { ...one, name: added.name }
}

t.test('a subscription is disabled and enabled, also after a restart', async (t) => {
  const { memory, subscriptions, name } = await openWithOne()
  const seen = async () =>
    [subscriptions, (await open(memory.crashed())).subscriptions].map((all) =>
      all.ofTopic(topicId).map(({ disabledAt }) => disabledAt !== undefined),
    )
  t.same(await seen(), [[false], [false]])
  t.equal(await subscriptions.disable(name), true)
  t.equal(await subscriptions.disable(name), false)
  t.same(await seen(), [[true], [true]], 'it still gets its events')
  t.equal(await subscriptions.enable(name), true)
  t.equal(await subscriptions.enable(name), false)
  t.same(await seen(), [[false], [false]])
  t.equal(await subscriptions.disable('unknown'), false)
  t.equal(await subscriptions.enable('unknown'), false)
})

t.test('nothing brings a removed subscription back', async (t) => {
  for (const isDisabled of [false, true]) {
    for (const change of ['disable', 'enable'] as const) {
      for (const order of ['before', 'after']) {
        const { memory, subscriptions, name } = await openWithOne()
        if (isDisabled) await subscriptions.disable(name)
        const early = order === 'before' ? subscriptions[change](name) : undefined
        const removed = subscriptions.remove(institutionId, name)
        const late = order === 'after' ? subscriptions[change](name) : undefined
        t.equal(await removed, true)
        await Promise.all([early, late])
        t.equal(subscriptions.find(name), undefined, `${change} ${order} it is removed`)
        t.same(subscriptions.ofTopic(topicId), [])
        t.same(memory.keys('subscription/'), [])
      }
    }
  }
})

t.test('a removal that is not stored has not happened', async (t) => {
  const { memory, subscriptions, name } = await openWithOne()
  memory.judge(() => 'refused')
  await t.rejects(subscriptions.remove(institutionId, name), { message: 'disk full' })
  t.equal(subscriptions.ofTopic(topicId).length, 1)
  memory.judge(() => 'stored')
  await subscriptions.disable(name)
  t.ok(subscriptions.find(name)?.disabledAt)
  t.equal(await subscriptions.remove(institutionId, name), true)
  t.equal(await subscriptions.remove(institutionId, name), false)
})

t.test('two removals at once: one of them did it', async (t) => {
  const { subscriptions, name } = await openWithOne()
  t.equal(await subscriptions.remove('urn:org:institution:other', name), false)
  const both = [subscriptions.remove(institutionId, name), subscriptions.remove(institutionId, name)]
  t.same(await Promise.all(both), [true, false])
})
