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
  /** The account in the tokens of its pushes. Fixed at creation, because receivers compare it (service.md §5). */
  serviceAccount: string
  ackDeadlineSeconds: number
  retryPolicy: string | null
  createdAt: string
  /** User id. */
  createdBy: string
  /** The webhook gets the events accepted from this time on, which is before `createdAt`, ISO 8601. */
  from?: string
  /** Set until the queue holds the earlier events, accepted since `from`. Nothing is sent before. */
  isBeginning?: true
  /** Set: the endpoint wants no more messages. The queue waits until the webhook is enabled again. */
  disabledAt?: string
  /** Set: an operator has paused the webhook. The queue waits until an operator resumes it. */
  pausedAt?: string
  /** Operating-system user of that operator. */
  pausedBy?: string
  /** The node that is to inform the contact that the webhook is disabled. */
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
/** Longest time from the moment when an event gets its id until it is stored, milliseconds. */
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

/** Whether a text is, or was, the name of a subscription. */
export function isSubscriptionName(text: string): boolean {
  return text.startsWith(namePrefix)
}

/**
 * Whether an event was accepted since `from`, the time with which a subscription begins. An event accepted earlier does
 * not count, even if its publisher repeated the event after `from`.
 */
export function isOfBeginning({ from }: Pick<PushSubscription, 'from'>, eventId: string): boolean {
  const acceptedAt = timeOfEventId(eventId) ?? Number.POSITIVE_INFINITY
  return from !== undefined && acceptedAt >= Date.parse(from) - maxStoringMs
}

/** A subscription as it is after a change; undefined: there was nothing to change. */
type Changed = PushSubscription | undefined

/** Notes that the queue of a subscription holds the earlier events. */
export function begun({ isBeginning, ...others }: PushSubscription): Changed {
  return isBeginning && others
}

/** Notes that nothing is sent to the webhook any more. `toldBy`: the node that informs its contact. */
export function disabled(now: PushSubscription, disabledAt: string, toldBy?: string): Changed {
  if (now.disabledAt !== undefined) return undefined
  return { ...now, disabledAt, ...(toldBy !== undefined && { toldBy }) }
}

export function enabled({ disabledAt, toldBy: _nobody, ...others }: PushSubscription): Changed {
  return disabledAt === undefined ? undefined : others
}

/** Notes that nothing is sent to the webhook until an operator resumes it, even if it is enabled meanwhile. */
export function paused(now: PushSubscription, pausedAt: string, pausedBy: string): Changed {
  return now.pausedAt === undefined ? { ...now, pausedAt, pausedBy } : undefined
}

export function resumed({ pausedAt, pausedBy: _nobody, ...others }: PushSubscription): Changed {
  return pausedAt === undefined ? undefined : others
}

/** Hands the duty to inform the contact from node `from` to node `to`. Without `to`: the contact is informed. */
export function passed({ toldBy, ...others }: PushSubscription, from: string, to?: string): Changed {
  if (toldBy !== from) return undefined
  return to === undefined ? others : { ...others, toldBy: to }
}
