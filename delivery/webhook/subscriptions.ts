import { randomUUID } from 'node:crypto'
import { timeOfEventId } from '../../event/id.ts'
import { createCollection } from '../../store/collection.ts'
import { createLock } from '../../store/lock.ts'
import type { Change, Store } from '../../store/store.ts'

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
  /** Earlier than `createdAt`: it gets what was accepted from then on, ISO 8601. */
  from?: string
  /** Set: what it begins with is not in its queue yet, and nothing is sent before. */
  isBeginning?: true
  /** Set: its endpoint wanted nothing more. What is queued for it waits until it is enabled again. */
  disabledAt?: string
  /** Set: an operator has paused it. What is queued for it waits until an operator resumes it. */
  pausedAt?: string
  /** Operating-system user of that operator. */
  pausedBy?: string
  /** Node that is telling its contact so. */
  toldBy?: string
}

const namePrefix = 'de.org.hub.subscription.'

/** Whether it is, or was, the name of a subscription. */
export function isSubscriptionName(text: string): boolean {
  return text.startsWith(namePrefix)
}

/** An event gets its id before it is stored: this much earlier at most, milliseconds. */
const maxStoringMs = 1_000

/**
 * Whether an event was accepted since the time that a subscription begins with. One that was not is none of its
 * beginning, also where its publisher repeated it afterwards.
 */
export function isOfBeginning({ from }: Pick<PushSubscription, 'from'>, eventId: string): boolean {
  const acceptedAt = timeOfEventId(eventId) ?? Number.POSITIVE_INFINITY
  return from !== undefined && acceptedAt >= Date.parse(from) - maxStoringMs
}

const ackDeadlineSeconds = 20
/** Of one institution. More than anybody has livestreams times partners. */
const maxPerInstitution = 2_000

/** The push subscriptions, in the store and mirrored in memory. */
export async function createPushSubscriptions(parts: {
  store: Store
  serviceAccount: string
  clock: () => number
}) {
  const { store, serviceAccount, clock } = parts
  const collection = await createCollection<PushSubscription>(store, 'subscription')
  /** Names by topic: asked for every event. */
  const topics = new Map<string, Set<string>>()
  for (const subscription of collection.values()) index(subscription)
  collection.onChanged((_name, before, after) => {
    if (before) unindex(before)
    if (after) index(after)
  })
  // Disabling must not bring back what was just removed, nor two users exceed what one institution may have.
  const inTurn = await createLock(store, 'subscription')

  return {
    /** Undefined: the institution has too many. */
    add: (
      request: Pick<PushSubscription, 'topicId' | 'url' | 'contact' | 'institutionId' | 'createdBy' | 'from'>,
    ): Promise<PushSubscription | undefined> =>
      inTurn(async (held) => {
        if (ofInstitution(request.institutionId).length >= maxPerInstitution) return undefined
        const subscription: PushSubscription = {
          name: namePrefix + randomUUID(),
          ...request,
          serviceAccount,
          ackDeadlineSeconds,
          retryPolicy: null,
          createdAt: new Date(clock()).toISOString(),
          ...(request.from !== undefined && { isBeginning: true }),
        }
        await collection.put(subscription.name, subscription, held)
        index(subscription)
        return subscription
      }),

    /** What it begins with is in its queue. `alongside` is stored with it. */
    begun: (name: string, alongside: readonly Change[] = []): Promise<void> =>
      inTurn(async (held) => {
        const { isBeginning, ...subscription } = collection.get(name) ?? {}
        if (!isBeginning || !('name' in subscription)) return
        await collection.put(name, subscription, [...alongside, ...held])
      }),

    /** A change that changes nothing: its commit applies only while the subscription stays as it is now. */
    unchanged: collection.unchanged,

    /** Calls back with each that was made or changed without a call of this node that says so. */
    onHeard: (listener: (name: string) => void): void => collection.onChanged(listener),

    /** Those of an institution, oldest first: every user of it has the same rights (service.md §4.1). */
    ofInstitution,

    /** One of an institution; undefined also when it belongs to another. */
    get: ofInstitutionNamed,

    /** One of any institution. */
    find: (name: string): PushSubscription | undefined => collection.get(name),

    list: (): PushSubscription[] => [...collection.values()].sort(byCreation),

    /** `alongside` is stored with it. */
    remove: (institutionId: string, name: string, alongside: readonly Change[] = []): Promise<boolean> =>
      inTurn(async (held) => {
        const subscription = ofInstitutionNamed(institutionId, name)
        if (!subscription || !(await collection.delete(name, [...alongside, ...held]))) return false
        unindex(subscription)
        return true
      }),

    /** Nothing is sent to it any more. True when it was enabled. `teller`: the node that tells its contact. */
    disable: (name: string, teller?: string): Promise<boolean> =>
      inTurn(async (held) => {
        const subscription = collection.get(name)
        if (!subscription || subscription.disabledAt !== undefined) return false
        const disabledAt = new Date(clock()).toISOString()
        const told = teller !== undefined && { toldBy: teller }
        await collection.put(name, { ...subscription, disabledAt, ...told }, held)
        return true
      }),

    /** True when it was disabled. What `alongside` makes is stored with it. */
    enable: (name: string, alongside: () => readonly Change[] = () => []): Promise<boolean> =>
      inTurn(async (held) => {
        const { disabledAt, toldBy: _nobody, ...subscription } = collection.get(name) ?? {}
        if (disabledAt === undefined || !('name' in subscription)) return false
        await collection.put(name, subscription, [...alongside(), ...held])
        return true
      }),

    /** Nothing is sent to it until it is resumed, enabled or not. True when it was not paused. */
    pause: (name: string, by: string): Promise<boolean> =>
      inTurn(async (held) => {
        const subscription = collection.get(name)
        if (!subscription || subscription.pausedAt !== undefined) return false
        const pausedAt = new Date(clock()).toISOString()
        await collection.put(name, { ...subscription, pausedAt, pausedBy: by }, held)
        return true
      }),

    /** True when it was paused. `alongside` is stored with it. */
    resume: (name: string, alongside: readonly Change[] = []): Promise<boolean> =>
      inTurn(async (held) => {
        const { pausedAt, pausedBy: _nobody, ...subscription } = collection.get(name) ?? {}
        if (pausedAt === undefined || !('name' in subscription)) return false
        await collection.put(name, subscription, [...alongside, ...held])
        return true
      }),

    /**
     * Who tells the contact changes from one node to another, or to nobody when it is done. False: it was not the
     * one any more.
     */
    passTelling: (name: string, from: string, to?: string): Promise<boolean> =>
      inTurn(async (held) => {
        const { toldBy, ...subscription } = collection.get(name) ?? {}
        if (toldBy !== from || !('name' in subscription)) return false
        await collection.put(name, { ...subscription, ...(to !== undefined && { toldBy: to }) }, held)
        return true
      }),

    /** Those that get the events of a livestream. */
    ofTopic: (topicId: string): PushSubscription[] =>
      [...(topics.get(topicId) ?? [])].flatMap((name) => {
        const subscription = collection.get(name)
        return subscription ? [subscription] : []
      }),
  }

  function index({ name, topicId }: PushSubscription): void {
    const names = topics.get(topicId) ?? new Set()
    topics.set(topicId, names.add(name))
  }

  function unindex({ name, topicId }: PushSubscription): void {
    const names = topics.get(topicId)
    names?.delete(name)
    if (names?.size === 0) topics.delete(topicId)
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

function byCreation(a: PushSubscription, b: PushSubscription): number {
  return a.createdAt < b.createdAt ? -1 : 1
}
