import t, { type Test } from 'tap'
import { createPushSubscriptions } from '../../delivery/webhook/subscriptions.ts'
import { commitTogether } from '../../store/commit-together.ts'
import { createTopics } from '../../validator/topics.ts'
import { createSharedSpace, settled } from '../shared-store.ts'

const clock = () => Date.parse('2026-03-01T12:00:00Z')
const topicId = 'urn:org:permanent-livestream:1'
const institutionId = 'urn:org:institution:a'
const request = { topicId, institutionId, url: 'https://a.example/', contact: 'a@b', createdBy: 'u' }

async function openNodes(t: Test) {
  const space = createSharedSpace()
  const open = async () => {
    const store = space.openFollowed(t)
    const subscriptions = await createPushSubscriptions({ store, serviceAccount: 'a@b', clock })
    const topics = await createTopics(store)
    store.start()
    return { store, subscriptions, topics }
  }
  return { a: await open(), b: await open(), later: open }
}

t.test(
  'events go to subscriptions made on another node, disabled or not, until they are removed',
  async (t) => {
    const { a, b } = await openNodes(t)
    const made = await a.subscriptions.add(request)
    if (!made) throw new Error('not made')
    const { name } = made
    await settled(b.store)
    t.strictSame(b.subscriptions.ofTopic(topicId), [made])
    await b.subscriptions.disable(name)
    await settled(a.store)
    t.match(a.subscriptions.ofTopic(topicId), [{ name, disabledAt: /^2026-/ }])
    t.equal(await a.subscriptions.enable(name), true)
    await settled(b.store)
    t.strictSame(b.subscriptions.ofTopic(topicId), [made])
    t.equal(await b.subscriptions.remove(institutionId, name), true)
    await settled(a.store)
    t.strictSame(a.subscriptions.ofTopic(topicId), [])
    t.equal(await a.subscriptions.remove(institutionId, name), false)
  },
)

t.test('of two nodes one pauses, and what the other changes meanwhile stays', async (t) => {
  const { a, b } = await openNodes(t)
  const made = await a.subscriptions.add(request)
  if (!made) throw new Error('not made')
  const { name } = made
  await settled(b.store)
  const paused = await Promise.all([
    a.subscriptions.pause(name, 'kim'),
    b.subscriptions.pause(name, 'ann'),
    a.subscriptions.disable(name),
  ])
  t.same(paused.sort(), [false, true, true])
  await settled(a.store, b.store)
  const stored = a.subscriptions.find(name)
  t.match(stored, { pausedAt: /^2026-/, pausedBy: /^(kim|ann)$/, disabledAt: /^2026-/ })
  t.same(b.subscriptions.find(name), stored)
  const ended = await Promise.all([a.subscriptions.enable(name), b.subscriptions.resume(name)])
  t.same(ended, [true, true])
  await settled(a.store, b.store)
  for (const { subscriptions } of [a, b]) t.strictSame(subscriptions.find(name), made)
})

t.test('disabling does not bring back what another node removes', async (t) => {
  for (const isFirst of ['disable', 'remove']) {
    const { a, b } = await openNodes(t)
    const made = await a.subscriptions.add(request)
    if (!made) throw new Error('not made')
    await settled(b.store)
    const changes = [
      () => a.subscriptions.disable(made.name),
      () => b.subscriptions.remove(institutionId, made.name),
    ]
    await Promise.all((isFirst === 'disable' ? changes : changes.reverse()).map((change) => change()))
    await settled(a.store, b.store)
    t.strictSame([...a.subscriptions.list(), ...b.subscriptions.list()], [])
  }
})

t.test('topics created by another node are there', async (t) => {
  const { a, b } = await openNodes(t)
  const create = async ({ store, topics }: typeof a, now: number) => {
    let created = 0
    const missing = () => {
      const part = topics.missing([topicId], now)()
      created = part.changes.length
      return part
    }
    await commitTogether(store, [missing])
    return created
  }
  t.equal(await create(a, clock()), 1)
  await settled(b.store)
  t.strictSame(b.topics.stored, a.topics.stored)
  t.equal(await create(b, clock()), 0)
})

t.test('of a topic created on two nodes at once all show the same', async (t) => {
  const { a, b, later } = await openNodes(t)
  await Promise.all(
    [a, b].map(({ store, topics }, index) =>
      commitTogether(store, [topics.missing([topicId], clock() + index)]),
    ),
  )
  await settled(a.store, b.store)
  t.strictSame(a.topics.stored, b.topics.stored)
  t.strictSame(a.topics.stored, (await later()).topics.stored, 'and it is what is stored')
})

t.test('a secret made on one node signs on the other, and both keep what the other made', async (t) => {
  const { a, b } = await openNodes(t)
  const made = await a.subscriptions.add(request)
  if (!made) throw new Error('not made')
  const { name } = made
  await settled(b.store)
  const answers = await Promise.all([a.subscriptions.addSecret(name), b.subscriptions.addSecret(name)])
  await settled(a.store, b.store)
  t.strictSame(a.subscriptions.find(name), b.subscriptions.find(name))
  const secrets = b.subscriptions.find(name)?.secrets?.map(({ secret }) => secret) ?? []
  t.same([...secrets].sort(), answers.map((answer) => answer?.secret).sort())
  t.equal(await a.subscriptions.removeSecrets(name), true)
  await settled(b.store)
  t.strictSame(b.subscriptions.find(name), made)
  t.equal(await b.subscriptions.removeSecrets(name), false)
  t.equal(await b.subscriptions.addSecret('de.org.hub.subscription.none'), undefined)
})
