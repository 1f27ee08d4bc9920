import { createCollection } from '../../store/collection.ts'
import { storeKeys } from '../../store/keys.ts'
import { createLock } from '../../store/lock.ts'
import type { Change, Store } from '../../store/store.ts'
import {
  disabled,
  enabled,
  newSubscription,
  type PushSubscription,
  passed,
  paused,
  resumed,
  type SubscriptionRequest,
  withoutBeginning,
} from './subscription.ts'

export type PushSubscriptions = Awaited<ReturnType<typeof createPushSubscriptions>>

/**
 * Maximum numbers of subscriptions of one institution. Each subscription of a livestream costs an item per event:
 * docs/decisions, "An institution has at most 50 webhooks of a livestream".
 */
export const maxSubscriptions = { perInstitution: 2_000, perLivestream: 50 }

/** The push subscriptions, in the store and mirrored in memory. */
export async function createPushSubscriptions(parts: {
  store: Store
  serviceAccount: string
  clock: () => number
}) {
  const { store, serviceAccount, clock } = parts
  const collection = await createCollection<PushSubscription>(store, storeKeys.subscription)
  const topics: Topics = new Map()
  for (const subscription of collection.values()) addTo(topics, subscription)
  collection.onChanged((_name, before, after) => {
    if (before) removeFrom(topics, before)
    if (after) addTo(topics, after)
  })
  // Without this lock, disabling could bring back a removed subscription, and two additions could exceed the limit.
  const inLock = await createLock(store, 'subscription')

  return {
    /** Adds a subscription. Undefined: the institution has too many (`maxSubscriptions`). */
    add: (request: SubscriptionRequest): Promise<PushSubscription | undefined> =>
      inLock(async (held) => {
        if (isFull(ofInstitution(request.institutionId), request.topicId)) return undefined
        const subscription = newSubscription(request, serviceAccount, isoNow())
        await collection.put(subscription.name, subscription, held)
        addTo(topics, subscription)
        return subscription
      }),

    /** Removes the mark `isBeginning`. The same commit stores `alongside`. True if the mark was set. */
    endBeginning: (name: string, alongside: readonly Change[] = []): Promise<boolean> =>
      change(name, withoutBeginning, () => alongside),

    /** Condition for a commit: the stored subscription must be the one that `find` shows now. */
    unchanged: collection.unchanged,

    /** Calls back after a change by another node, or by an unanswered commit of this node. */
    onHeard: (listener: (name: string) => void): void => collection.onChanged(listener),

    /** Oldest first. All users of an institution have the same rights (service.md §4.1). */
    ofInstitution,

    /** A subscription of an institution. Undefined also if the subscription belongs to another institution. */
    get: ofInstitutionNamed,

    /** A subscription of any institution. */
    find: (name: string): PushSubscription | undefined => collection.get(name),

    list: (): PushSubscription[] => [...collection.values()].sort(byCreation),

    /** Removes a subscription. The same commit stores `alongside`. False: the institution has no such subscription. */
    remove: (institutionId: string, name: string, alongside: readonly Change[] = []): Promise<boolean> =>
      inLock(async (held) => {
        const subscription = ofInstitutionNamed(institutionId, name)
        if (!subscription || !(await collection.delete(name, [...alongside, ...held]))) return false
        removeFrom(topics, subscription)
        return true
      }),

    /**
     * Disables a webhook. Returns true if the webhook was enabled before. `teller`: the node that informs the contact.
     */
    disable: (name: string, teller?: string): Promise<boolean> =>
      change(name, (now) => disabled(now, isoNow(), teller)),

    /** Enables a webhook. The same commit stores `alongside()`. True if the webhook was disabled. */
    enable: (name: string, alongside?: () => readonly Change[]): Promise<boolean> =>
      change(name, enabled, alongside),

    /** Stops sending until `resume`, whatever `enable` does. True if the webhook was not paused. */
    pause: (name: string, by: string): Promise<boolean> => change(name, (now) => paused(now, isoNow(), by)),

    /** Ends a pause. The same commit stores `alongside`. True if the webhook was paused. */
    resume: (name: string, alongside: readonly Change[] = []): Promise<boolean> =>
      change(name, resumed, () => alongside),

    /** Gives node `to` the duty to inform the contact. Without `to`, ends the duty. False: `from` had no such duty. */
    passTelling: (name: string, from: string, to?: string): Promise<boolean> =>
      change(name, (now) => passed(now, from, to)),

    /** Names of subscriptions, by livestream. The planner looks them up for every event. */
    topics: topics as ReadonlyMap<string, ReadonlySet<string>>,

    /** The subscriptions that get the events of a livestream. */
    ofTopic: (topicId: string): PushSubscription[] =>
      [...(topics.get(topicId) ?? [])].flatMap((name) => {
        const subscription = collection.get(name)
        return subscription ? [subscription] : []
      }),
  }

  /** Stores what `next` returns. False: no such subscription, or nothing to change. */
  function change(
    name: string,
    next: (now: PushSubscription) => PushSubscription | undefined,
    alongside: () => readonly Change[] = () => [],
  ): Promise<boolean> {
    return inLock(async (held) => {
      const now = collection.get(name)
      const changed = now && next(now)
      if (!changed) return false
      await collection.put(name, changed, [...alongside(), ...held])
      return true
    })
  }

  function isoNow(): string {
    return new Date(clock()).toISOString()
  }

  function ofInstitution(institutionId: string): PushSubscription[] {
    return [...collection.values()]
      .filter((subscription) => subscription.institutionId === institutionId)
      .sort(byCreation)
  }

  function ofInstitutionNamed(institutionId: string, name: string): PushSubscription | undefined {
    const subscription = collection.get(name)
    return subscription?.institutionId === institutionId ? subscription : undefined
  }
}

function isFull(ofInstitution: readonly PushSubscription[], livestreamId: string): boolean {
  const { perInstitution, perLivestream } = maxSubscriptions
  const ofLivestream = ofInstitution.filter(({ topicId }) => topicId === livestreamId)
  return ofInstitution.length >= perInstitution || ofLivestream.length >= perLivestream
}

function byCreation(a: PushSubscription, b: PushSubscription): number {
  return a.createdAt < b.createdAt ? -1 : 1
}

/** Names of subscriptions by livestream URN. */
type Topics = Map<string, Set<string>>

function addTo(topics: Topics, { name, topicId }: PushSubscription): void {
  const names = topics.get(topicId) ?? new Set()
  topics.set(topicId, names.add(name))
}

function removeFrom(topics: Topics, { name, topicId }: PushSubscription): void {
  const names = topics.get(topicId)
  names?.delete(name)
  if (names?.size === 0) topics.delete(topicId)
}
