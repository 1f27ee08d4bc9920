import { randomUUID } from 'node:crypto'
import { createCollection } from '../store/collection.ts'
import type { Store } from '../store/store.ts'

export type PushSubscriptions = Awaited<ReturnType<typeof createPushSubscriptions>>

/** A webhook that gets the events of one livestream (service.md §2.8). */
export interface PushSubscription {
  /** `de.org.hub.subscription.<subscription-id>` */
  name: string
  /** Livestream URN. */
  topicId: string
  url: string
  contact: string
  institutionId: string
  /** The account in the claims of its pushes; fixed at creation, receivers compare it (service.md §5). */
  serviceAccount: string
  ackDeadlineSeconds: number
  retryPolicy: string | null
  createdAt: string
  /** User id. */
  createdBy: string
}

const ackDeadlineSeconds = 20
/** Of one institution. More than anybody has livestreams times partners. */
const maxPerInstitution = 2_000

/** The push subscriptions, in the store and mirrored in memory. Their delivery is not decided here. */
export async function createPushSubscriptions(parts: {
  store: Store
  serviceAccount: string
  clock: () => number
}) {
  const { store, serviceAccount, clock } = parts
  const collection = await createCollection<PushSubscription>(store, 'subscription')

  return {
    /** Undefined: the institution has too many. */
    async add(
      request: Pick<PushSubscription, 'topicId' | 'url' | 'contact' | 'institutionId' | 'createdBy'>,
    ): Promise<PushSubscription | undefined> {
      if (ofInstitution(request.institutionId).length >= maxPerInstitution) return undefined
      const subscription: PushSubscription = {
        name: `de.org.hub.subscription.${randomUUID()}`,
        ...request,
        serviceAccount,
        ackDeadlineSeconds,
        retryPolicy: null,
        createdAt: new Date(clock()).toISOString(),
      }
      await collection.put(subscription.name, subscription)
      return subscription
    },

    /** Those of an institution, oldest first: every user of it has the same rights (service.md §4.1). */
    ofInstitution,

    /** One of an institution; undefined also when it belongs to another. */
    get: find,

    async remove(institutionId: string, name: string): Promise<boolean> {
      return find(institutionId, name) !== undefined && collection.delete(name)
    },

    /** Those that get the events of a livestream. */
    ofTopic: (topicId: string): PushSubscription[] =>
      [...collection.values()].filter((subscription) => subscription.topicId === topicId),
  }

  function ofInstitution(institutionId: string): PushSubscription[] {
    return [...collection.values()]
      .filter((subscription) => subscription.institutionId === institutionId)
      .sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1))
  }

  function find(institutionId: string, name: string): PushSubscription | undefined {
    const subscription = collection.get(name)
    return subscription?.institutionId === institutionId ? subscription : undefined
  }
}
