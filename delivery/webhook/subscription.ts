import { randomUUID } from 'node:crypto'
import { timeOfEventId } from '../../event/id.ts'
import { eventKinds } from '../../event/kind.ts'

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
  /** Earlier than `createdAt`: it gets events accepted from then on, ISO 8601. */
  from?: string
  /** Set: its queue does not hold its earlier events yet, and nothing is sent before it does. */
  isBeginning?: true
  /** Set: its endpoint wanted nothing more. Its queue waits until it is enabled again. */
  disabledAt?: string
  /** Set: an operator has paused it. Its queue waits until an operator resumes it. */
  pausedAt?: string
  /** Operating-system user of that operator. */
  pausedBy?: string
  /** Node that is telling its contact that it is disabled. */
  toldBy?: string
}

/** The subscription that a user asks for. */
export type SubscriptionRequest = Pick<
  PushSubscription,
  'topicId' | 'url' | 'contact' | 'institutionId' | 'createdBy' | 'from'
>

/** Webhooks get track events only (design.md §7). */
export const pushedKinds = eventKinds.filter((kind) => kind.class === 'track')

const namePrefix = 'de.org.hub.subscription.'
const ackDeadlineSeconds = 20
/** An event gets its id at most so long before it is stored, milliseconds. */
const maxStoringMs = 1_000

export function newSubscription(
  request: SubscriptionRequest,
  serviceAccount: string,
  createdAt: string,
): PushSubscription {
  return {
    name: namePrefix + randomUUID(),
    ...request,
    ...{ serviceAccount, ackDeadlineSeconds, retryPolicy: null, createdAt },
    ...(request.from !== undefined && { isBeginning: true }),
  }
}

/** Whether it is, or was, the name of a subscription. */
export function isSubscriptionName(text: string): boolean {
  return text.startsWith(namePrefix)
}

/**
 * Whether an event was accepted since the time that a subscription begins with. An event from before does not belong
 * to its beginning, even if its publisher repeated the event afterwards.
 */
export function isOfBeginning({ from }: Pick<PushSubscription, 'from'>, eventId: string): boolean {
  const acceptedAt = timeOfEventId(eventId) ?? Number.POSITIVE_INFINITY
  return from !== undefined && acceptedAt >= Date.parse(from) - maxStoringMs
}

/** A subscription as it is after a change; undefined: there was nothing to change. */
type Changed = PushSubscription | undefined

/** Its queue holds its earlier events. */
export function begun({ isBeginning, ...others }: PushSubscription): Changed {
  return isBeginning && others
}

/** Nothing is sent to it any more. `toldBy`: the node that tells its contact. */
export function disabled(now: PushSubscription, disabledAt: string, toldBy?: string): Changed {
  if (now.disabledAt !== undefined) return undefined
  return { ...now, disabledAt, ...(toldBy !== undefined && { toldBy }) }
}

export function enabled({ disabledAt, toldBy: _nobody, ...others }: PushSubscription): Changed {
  return disabledAt === undefined ? undefined : others
}

/** Nothing is sent to it until it is resumed, enabled or not. */
export function paused(now: PushSubscription, pausedAt: string, pausedBy: string): Changed {
  return now.pausedAt === undefined ? { ...now, pausedAt, pausedBy } : undefined
}

export function resumed({ pausedAt, pausedBy: _nobody, ...others }: PushSubscription): Changed {
  return pausedAt === undefined ? undefined : others
}

/** The node `to` tells the contact from now on instead of the node `from`; without `to` the contact has been told. */
export function passed({ toldBy, ...others }: PushSubscription, from: string, to?: string): Changed {
  if (toldBy !== from) return undefined
  return to === undefined ? others : { ...others, toldBy: to }
}
