import { randomUUID } from 'node:crypto'
import type { MaxAge } from '../../event/delivery-fields.ts'
import { timeOfEventId } from '../../event/format.ts'
import type { Selected } from './selected.ts'
import { type SigningSecret, withNewSecret } from './signature.ts'

/** A webhook that gets the events of one livestream or more (service.md §2.8). */
export interface PushSubscription extends Selected {
  /** `de.org.hub.subscription.<subscription-id>` */
  name: string
  url: string
  contact: string
  institutionId: string
  /** Service account in the tokens, fixed at creation: receivers compare it (service.md §5). */
  serviceAccount: string
  ackDeadlineSeconds: number
  retryPolicy: string | null
  createdAt: string
  /** Id of the user who created the subscription. */
  createdBy: string
  /** For how long an event is worth delivering. Absent: always. */
  maxAge?: MaxAge
  /** Different livestreams are delivered side by side. Absent: one order over all of them. */
  ordering?: 'livestream'
  /** An event is delivered this long after its acceptance, milliseconds. Absent: at once. */
  delay?: number
  /** The webhook begins with the events accepted since this time, ISO 8601. */
  from?: string
  /** Set until the queue holds the events since `from`. The hub sends nothing meanwhile. */
  isBeginning?: true
  /** When the hub disabled the webhook because of 410, ISO 8601. Items wait. */
  disabledAt?: string
  /** When somebody paused the webhook, ISO 8601. Items wait. */
  pausedAt?: string
  /** Operating-system user or e-mail address of the person who paused the webhook. */
  pausedBy?: string
  /** The webhook was paused by a user of its own institution. Absent: by an operator, who alone resumes it. */
  isPausedByOwner?: true
  /** Id of the node that still has to inform the contact of a disabled webhook. */
  toldBy?: string
  /** What signs its pushes, the present secret first. Shown to nobody after it was made. */
  secrets?: readonly SigningSecret[]
}

/** The subscription that a user asks for. */
export type SubscriptionRequest = Selected &
  Pick<
    PushSubscription,
    'url' | 'contact' | 'institutionId' | 'createdBy' | 'from' | 'maxAge' | 'delay' | 'ordering'
  >

const namePrefix = 'de.org.hub.subscription.'
const ackDeadlineSeconds = 20
/** Longest time between an event's id and its commit, milliseconds. */
const maxStoringMs = 1_000

export function newSubscription(
  request: SubscriptionRequest,
  serviceAccount: string,
  createdAt: string,
): PushSubscription {
  return {
    name: namePrefix + randomUUID(),
    ...request,
    serviceAccount,
    ackDeadlineSeconds,
    retryPolicy: null,
    createdAt,
    ...(request.from !== undefined && { isBeginning: true }),
  }
}

/** Whether a text has the form of a subscription name. A subscription with this name need not exist (any more). */
export function isSubscriptionName(text: string): boolean {
  return text.startsWith(namePrefix)
}

/**
 * Whether an event was first accepted since `from`, by the time in its id. A repetition keeps the id, so a repeated
 * older event does not count.
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

/** Marks a webhook as disabled. `toldBy`: the node that informs its contact. */
export function disabled(now: PushSubscription, disabledAt: string, toldBy?: string): Changed {
  if (now.disabledAt !== undefined) return undefined
  return { ...now, disabledAt, ...(toldBy !== undefined && { toldBy }) }
}

export function enabled({ disabledAt, toldBy: _nobody, ...others }: PushSubscription): Changed {
  return disabledAt === undefined ? undefined : others
}

/** Marks a webhook as paused. Enabling a webhook does not end its pause. */
export function paused(
  now: PushSubscription,
  pausedAt: string,
  pausedBy: string,
  { isOwner }: AsOwner,
): Changed {
  if (now.pausedAt !== undefined) return undefined
  return { ...now, pausedAt, pausedBy, ...(isOwner && { isPausedByOwner: true }) }
}

/** Ends a pause. An owner ends no pause of an operator. */
export function resumed(now: PushSubscription, { isOwner }: AsOwner): Changed {
  const { pausedAt, pausedBy: _nobody, isPausedByOwner = false, ...others } = now
  return pausedAt === undefined || (isOwner && !isPausedByOwner) ? undefined : others
}

/** Who pauses or resumes a webhook. `isOwner`: a user of its institution, not an operator. */
export interface AsOwner {
  isOwner?: boolean | undefined
}

/** Gives a webhook a new secret. `now`: milliseconds since the epoch. Undefined: too many sign already. */
export function withSecret(subscription: PushSubscription, now: number): Changed {
  const secrets = withNewSecret(subscription.secrets, now)
  return secrets && { ...subscription, secrets }
}

/** Takes all secrets from a webhook. */
export function unsigned({ secrets, ...others }: PushSubscription): Changed {
  return secrets === undefined ? undefined : others
}

/** Hands the duty to inform the contact from node `from` to node `to`. Without `to`, the duty is done. */
export function passed({ toldBy, ...others }: PushSubscription, from: string, to?: string): Changed {
  if (toldBy !== from) return undefined
  return to === undefined ? others : { ...others, toldBy: to }
}
