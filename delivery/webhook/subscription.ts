import { randomUUID } from 'node:crypto'
import { timeOfEventId } from '../../event/format.ts'
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
  /** Service account in the tokens of the pushes. Fixed at creation, because receivers compare it (service.md §5). */
  serviceAccount: string
  ackDeadlineSeconds: number
  retryPolicy: string | null
  createdAt: string
  /** Id of the user who created the subscription. */
  createdBy: string
  /** The webhook also gets earlier events: those accepted from this time on, which is before `createdAt`. ISO 8601. */
  from?: string
  /** Set until the queue holds the earlier events (accepted since `from`). Until then, the hub sends nothing. */
  isBeginning?: true
  /** When the hub disabled the webhook, ISO 8601: it answered only 410. Items wait until it is enabled again. */
  disabledAt?: string
  /** When an operator paused the webhook, ISO 8601. Items wait until an operator resumes it. */
  pausedAt?: string
  /** Operating-system user of the operator who paused the webhook. */
  pausedBy?: string
  /** Id of the node that has to inform the contact that the webhook is disabled. Undefined once that is done. */
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
/** From the moment when an event gets its id, the hub takes at most this time to store the event, milliseconds. */
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
 * Whether an event was first accepted since `from`, the time with which a subscription begins. The event id contains
 * the time of the first acceptance. So an older event does not count, even if its publisher repeated it after `from`.
 */
export function isOfBeginning({ from }: Pick<PushSubscription, 'from'>, eventId: string): boolean {
  const acceptedAt = timeOfEventId(eventId) ?? Number.POSITIVE_INFINITY
  return from !== undefined && acceptedAt >= Date.parse(from) - maxStoringMs
}

/** A changed subscription. Undefined: there was nothing to change. */
type Changed = PushSubscription | undefined

/** Removes the mark `isBeginning`, because the queue now holds the earlier events. */
export function withoutBeginning({ isBeginning, ...others }: PushSubscription): Changed {
  return isBeginning && others
}

/** Marks a webhook as disabled: the hub sends it nothing more. `toldBy`: the node that informs its contact. */
export function disabled(now: PushSubscription, disabledAt: string, toldBy?: string): Changed {
  if (now.disabledAt !== undefined) return undefined
  return { ...now, disabledAt, ...(toldBy !== undefined && { toldBy }) }
}

export function enabled({ disabledAt, toldBy: _nobody, ...others }: PushSubscription): Changed {
  return disabledAt === undefined ? undefined : others
}

/** Marks a webhook as paused: the hub sends nothing until an operator resumes it, even if it is enabled meanwhile. */
export function paused(now: PushSubscription, pausedAt: string, pausedBy: string): Changed {
  return now.pausedAt === undefined ? { ...now, pausedAt, pausedBy } : undefined
}

export function resumed({ pausedAt, pausedBy: _nobody, ...others }: PushSubscription): Changed {
  return pausedAt === undefined ? undefined : others
}

/** Hands the duty to inform the contact from node `from` to node `to`. Without `to`, the duty is done. */
export function passed({ toldBy, ...others }: PushSubscription, from: string, to?: string): Changed {
  if (toldBy !== from) return undefined
  return to === undefined ? others : { ...others, toldBy: to }
}
