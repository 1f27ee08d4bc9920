import t from 'tap'
import { subscriptionRoutes } from '../../../bridge-https/routes/subscription-routes.ts'
import { institutions, station } from '../../events.ts'

t.test('a user who is removed while the URL is checked gets no webhook', async (t) => {
  const [institutionId = ''] = institutions
  const topic = { id: station().id, createdAt: '2026-06-01T12:00:00.000Z' }
  let isRemoved = false
  const unused = () => {
    throw new Error('nothing is added, read or removed')
  }
  const routes = subscriptionRoutes({
    subscriptions: {
      add: unused,
      get: unused,
      ofInstitution: () => [],
      remove: unused,
      standing: () => ({ state: 'active', since: '', reason: null }),
    },
    topics: { get: () => topic },
    names: { topicOf: () => '' } as never,
    rate: { take: () => 0, charge: () => undefined },
    // The asker's own name server may answer as slowly as it likes.
    async checkUrl() {
      isRemoved = true
      return undefined
    },
  })
  const [subscribe] = routes
  const call = {
    ...{ params: {}, query: {}, address: '127.0.0.1', at: Date.now(), started: 0, count: () => undefined },
    body: { type: 'PUBSUB', url: 'https://hooks.example/', contact: 'a@b.example', topic: topic.id },
    header: () => undefined,
    isStillUser: async () => !isRemoved,
  }
  const user = { userId: 'u', email: 'a@b.example', emailVerified: true, institutionId }
  const answer = await subscribe?.handle(call, {
    ...user,
    permissions: ['subscribe'],
    createdAt: '',
    generation: 0,
  })
  t.equal(answer?.status, 403)
})
