import t from 'tap'
import type { PushSubscription } from '../../../delivery/webhook/subscription.ts'
import { createPushSubscriptions } from '../../../delivery/webhook/subscriptions.ts'
import { createCollection } from '../../../store/collection.ts'
import { storeKeys } from '../../../store/keys.ts'
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
    topicId,
    institutionId,
    url: 'https://hooks.example/',
    contact: 'a@b.example',
    createdBy: 'u',
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

t.test('a subscription is paused and resumed, disabled or not, also after a restart', async (t) => {
  const { memory, subscriptions, name } = await openWithOne()
  const seen = async () =>
    [subscriptions, (await open(memory.crashed())).subscriptions].map((all) => {
      const { pausedBy, disabledAt } = all.ofTopic(topicId)[0] ?? {}
      return [pausedBy, disabledAt !== undefined]
    })
  const both = (...state: unknown[]) => [state, state]
  t.equal(await subscriptions.pause(name, 'kim'), true)
  t.equal(await subscriptions.pause(name, 'ann'), false)
  t.same(await seen(), both('kim', false), 'it still gets its events')
  t.equal(await subscriptions.disable(name), true)
  t.same(await seen(), both('kim', true))
  t.equal(await subscriptions.enable(name), true)
  t.same(await seen(), both('kim', false), 'enabling does not resume')
  await subscriptions.disable(name)
  t.equal(await subscriptions.resume(name), true)
  t.equal(await subscriptions.resume(name), false)
  t.same(await seen(), both(undefined, true), 'resuming does not enable')
  t.equal(await subscriptions.pause('unknown', 'kim'), false)
  t.equal(await subscriptions.resume('unknown'), false)
})

t.test('a pause that is not stored has not happened', async (t) => {
  const { memory, subscriptions, name } = await openWithOne()
  memory.judge(() => 'refused')
  await t.rejects(subscriptions.pause(name, 'kim'), { message: 'disk full' })
  t.equal(subscriptions.find(name)?.pausedAt, undefined)
  memory.judge(() => 'stored')
  t.equal(await subscriptions.pause(name, 'kim'), true)
  memory.judge(() => 'refused')
  await t.rejects(subscriptions.resume(name), { message: 'disk full' })
  t.equal(subscriptions.find(name)?.pausedBy, 'kim')
})

t.test('nothing brings a removed subscription back', async (t) => {
  for (const isDisabled of [false, true]) {
    for (const change of ['disable', 'enable', 'pause', 'resume'] as const) {
      for (const order of ['before', 'after']) {
        const { memory, subscriptions, name } = await openWithOne()
        if (isDisabled) await subscriptions.disable(name)
        if (isDisabled) await subscriptions.pause(name, 'kim')
        const makeChange = () =>
          change === 'pause' ? subscriptions.pause(name, 'kim') : subscriptions[change](name)
        const early = order === 'before' ? makeChange() : undefined
        const removed = subscriptions.remove(institutionId, name)
        const late = order === 'after' ? makeChange() : undefined
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

t.test(
  'an institution has at most 50 subscriptions of a livestream, and keeps those from before',
  async (t) => {
    const { memory, subscriptions, name } = await openWithOne()
    const add = (of: { topicId?: string; institutionId?: string } = {}) =>
      subscriptions.add({
        topicId,
        institutionId,
        url: 'https://hooks.example/',
        contact: 'a@b.example',
        createdBy: 'u',
        ...of,
      })
    for (let count = 1; count < 50; count++) t.ok(await add(), String(count))
    t.equal(await add(), undefined)
    t.ok(await add({ topicId: 'urn:org:permanent-livestream:2' }), 'of another livestream')
    t.ok(await add({ institutionId: 'urn:org:institution:2' }), 'of another institution')
    t.ok(await subscriptions.remove(institutionId, name))
    t.ok(await add(), 'in place of a removed one')

    // An earlier release let an institution have more.
    const collection = await createCollection<PushSubscription>(memory.store, storeKeys.subscription)
    const [first] = subscriptions.ofInstitution(institutionId)
    if (!first) throw new Error('no subscription')
    for (let count = 0; count < 10; count++)
      await collection.put(`more-${count}`, { ...first, name: `more-${count}` })
    const { subscriptions: again } = await open(memory.crashed())
    t.equal(again.ofTopic(topicId).length, 61)
    const { createdAt: _at, name: _name, ...request } = first
    t.equal(await again.add(request), undefined)
  },
)
