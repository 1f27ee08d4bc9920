import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { subscriptionRoutes } from '../../../bridge-https/routes/subscription-routes.ts'
import { institutions, station } from '../../events.ts'

type Parts = Parameters<typeof subscriptionRoutes>[0]

const [institutionId = ''] = institutions
const topic = { id: station().id, createdAt: '2026-06-01T12:00:00.000Z' }

t.test('a user who is removed while the URL is checked gets no webhook', async (t) => {
  let isRemoved = false
  const { subscribe } = open(
    {},
    {
      // The user's own name server can delay this check until the user is removed.
      async checkUrl() {
        isRemoved = true
        return undefined
      },
    },
  )
  const answer = await subscribe('u', async () => !isRemoved)
  t.equal(answer?.status, 403)
})

t.test('a change waits for earlier ones of its user, and for no others', async (t) => {
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const change = (user: string, what: string) => {
    begun.push(`${user} ${what}`)
    return new Promise<void>((resolve) => ends.set(user, resolve))
  }
  const { subscribe, unsubscribe } = open({
    add: async ({ createdBy }) => {
      await change(createdBy, 'subscribes')
      return undefined
    },
    remove: async () => {
      await change('one', 'unsubscribes')
      return true
    },
  })
  const changes = [unsubscribe('one'), subscribe('one'), subscribe('one'), subscribe('other')]
  await nextTurn()
  t.same(begun, ['one unsubscribes', 'other subscribes'])
  for (const count of [3, 4]) {
    ends.get('one')?.()
    await nextTurn()
    t.same(begun.slice(2), Array(count - 2).fill('one subscribes'))
  }
  for (const end of ends.values()) end()
  await Promise.all(changes)
})

/** The routes on fake parts. Each returned function asks one route as a user. */
function open(subscriptions: Partial<Parts['subscriptions']>, more: Partial<Parts> = {}) {
  const unused = () => {
    throw new Error('nothing is added, read or removed')
  }
  const routes = subscriptionRoutes({
    subscriptions: {
      add: unused,
      addSecret: unused,
      get: unused,
      ofInstitution: () => [],
      remove: unused,
      removeSecrets: unused,
      standing: () => ({ state: 'active', since: '', reason: null }),
      ...subscriptions,
    },
    topics: { stored: new Map([[topic.id, topic]]) },
    names: { topicOf: () => '' } as never,
    checkUrl: async () => undefined,
    audit: { change: unused },
    rate: { take: () => 0, charge: () => undefined },
    ...more,
  })
  const ask = (id: string, userId: string, isStillUser: () => Promise<boolean>) =>
    routes
      .find((route) => route.id === id)
      ?.handle(
        {
          params: {},
          query: {},
          address: '127.0.0.1',
          at: Date.now(),
          started: 0,
          count: () => undefined,
          body: { type: 'PUBSUB', url: 'https://hooks.example/', contact: 'a@b.example', topic: topic.id },
          header: () => undefined,
          filters: ['radio/#'],
          holder: userId,
          expiresAt: undefined,
          isStillUser,
        },
        {
          userId,
          email: 'a@b.example',
          emailVerified: true,
          institutionId,
          permissions: ['subscribe'],
          createdAt: '',
          generation: 0,
        },
      )
  return {
    subscribe: async (user: string, isStillUser = async () => true) => ask('subscribe', user, isStillUser),
    unsubscribe: async (user: string) => ask('deleteSubscription', user, async () => true),
  }
}
