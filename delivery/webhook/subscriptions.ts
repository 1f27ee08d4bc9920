import { createCollection } from '../../store/collection.ts'
import { storeKeys } from '../../store/keys.ts'
import { createLock } from '../../store/lock.ts'
import type { Change, Store } from '../../store/store.ts'
import { isForAll, named, type Selected } from './selected.ts'
import type { SigningSecret } from './signature.ts'
import {
  type AsOwner,
  disabled,
  enabled,
  newSubscription,
  type PushSubscription,
  passed,
  paused,
  resumed,
  type SubscriptionRequest,
  unsigned,
  withoutBeginning,
  withSecret,
} from './subscription.ts'

export type PushSubscriptions = Awaited<ReturnType<typeof createPushSubscriptions>>

/**
 * Maximum numbers of subscriptions of one institution. Each subscription of a livestream costs a delivery per event:
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
  const topics = createTopicsOfWebhooks()
  for (const subscription of collection.values()) topics.add(subscription)
  collection.onChanged((_name, before, after) => {
    if (before) topics.remove(before)
    if (after) topics.add(after)
  })
  // Without this lock, disabling could bring back a removed subscription, and two additions could exceed the limit.
  const inLock = await createLock(store, 'subscription')

  return {
    /** Adds a subscription. Undefined: the institution has too many (`maxSubscriptions`). */
    add: (request: SubscriptionRequest): Promise<PushSubscription | undefined> =>
      inLock(async (held) => {
        if (isFull(ofInstitution(request.institutionId), request)) return undefined
        const subscription = newSubscription(request, serviceAccount, isoNow())
        await collection.put(subscription.name, subscription, held)
        topics.add(subscription)
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
        topics.remove(subscription)
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
    pause: (name: string, by: string, as: AsOwner = {}): Promise<boolean> =>
      change(name, (now) => paused(now, isoNow(), by, as)),

    /** Ends a pause. The same commit stores `alongside`. False: there is no pause that `as` may end. */
    resume: (name: string, alongside: readonly Change[] = [], as: AsOwner = {}): Promise<boolean> =>
      change(
        name,
        (now) => resumed(now, as),
        () => alongside,
      ),

    /**
     * Gives a webhook a new secret to sign with, and returns it. Those before sign until `previousUntil`, ISO 8601. Undefined:
     * no such subscription, or so many sign already (`maxSecrets`).
     */
    async addSecret(name: string): Promise<{ secret: string; previousUntil: string | null } | undefined> {
      let made: readonly SigningSecret[] = []
      const isChanged = await change(name, (now) => {
        const changed = withSecret(now, clock())
        made = changed?.secrets ?? []
        return changed
      })
      const [first, second] = made
      return isChanged && first ? { secret: first.secret, previousUntil: second?.until ?? null } : undefined
    },

    /** Takes all secrets from a webhook. True if it had some. */
    removeSecrets: (name: string): Promise<boolean> => change(name, unsigned),

    /** Gives node `to` the duty to inform the contact. Without `to`, ends the duty. False: `from` had no such duty. */
    passTelling: (name: string, from: string, to?: string): Promise<boolean> =>
      change(name, (now) => passed(now, from, to)),

    /**
     * Whether a livestream has webhooks. The planner asks it for every event. `version`: a number that grows when a
     * subscription comes or goes.
     */
    topics: { has: topics.has, version: topics.version },

    /** The subscriptions that get the events of a livestream. */
    ofTopic: (livestreamId: string): PushSubscription[] =>
      topics.of(livestreamId).flatMap((name) => collection.get(name) ?? []),
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

/** Whether an institution has too many subscriptions for one more. One for all livestreams counts for each of them. */
function isFull(ofInstitution: readonly PushSubscription[], wanted: Selected): boolean {
  const { perInstitution, perLivestream } = maxSubscriptions
  if (ofInstitution.length >= perInstitution) return true
  const forAll = ofInstitution.filter(isForAll).length
  const counts = new Map<string, number>()
  for (const subscription of ofInstitution) {
    if (isForAll(subscription)) continue
    for (const id of named(subscription)) counts.set(id, (counts.get(id) ?? 0) + 1)
  }
  const wantedCounts = isForAll(wanted)
    ? [...counts.values()]
    : named(wanted).map((id) => counts.get(id) ?? 0)
  return wantedCounts.reduce((most, count) => Math.max(most, count), 0) + forAll >= perLivestream
}

function byCreation(a: PushSubscription, b: PushSubscription): number {
  return a.createdAt < b.createdAt ? -1 : 1
}

/** Finds the names of the subscriptions of a livestream. */
function createTopicsOfWebhooks() {
  const byLivestream = new Map<string, Set<string>>()
  const forAll = new Set<string>()
  let version = 0

  return {
    version: (): number => version,

    has: (livestreamId: string): boolean => forAll.size > 0 || byLivestream.has(livestreamId),

    of: (livestreamId: string): string[] => [...(byLivestream.get(livestreamId) ?? []), ...forAll],

    add(subscription: PushSubscription): void {
      const { name } = subscription
      version++
      if (isForAll(subscription)) {
        forAll.add(name)
        return
      }
      for (const id of named(subscription)) {
        const names = byLivestream.get(id) ?? new Set()
        byLivestream.set(id, names.add(name))
      }
    },

    remove(subscription: PushSubscription): void {
      const { name } = subscription
      version++
      forAll.delete(name)
      for (const id of named(subscription)) {
        const names = byLivestream.get(id)
        names?.delete(name)
        if (names?.size === 0) byLivestream.delete(id)
      }
    },
  }
}
