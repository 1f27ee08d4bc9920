import { randomUUID } from 'node:crypto'
import type { Attempt } from '../../event/outcome-schemas.ts'
import type { WorkItem } from '../queue/work-item.ts'
import { type AttemptOutcome, isClosed, mostLanes, type Target, type TargetOf } from '../target.ts'
import { pushBody } from './push-message.ts'
import { signatureHeaders } from './signature.ts'
import { isSubscriptionName, type PushSubscription } from './subscription.ts'
import type { PushSubscriptions } from './subscriptions.ts'
import type { Post } from './webhook.ts'

export type PushSender = ReturnType<typeof createPush>

/**
 * Test messages have an event name of their own. Receivers filter by event name, so they do not show a test (service.md
 * §1).
 */
const testEvent = 'de.org.hub.v1.test'

/** Pushes events to the webhooks of subscriptions. */
export function createPush(parts: {
  subscriptions: Pick<PushSubscriptions, 'find'>
  post: Post
  tokenFor: (audience: string, account: string) => Promise<string>
  /** Why the hub sends nothing to webhooks any more. Undefined: it still sends. */
  whyClosed: () => string | undefined
  clock: () => number
}) {
  const { subscriptions, post, tokenFor, whyClosed, clock } = parts
  /** By subscription as it is: one attempt asks several times, and a change makes another object. */
  const targets = new WeakMap<PushSubscription, Target>()

  return {
    targetOf,

    /** Why a queue is closed. Undefined: the queue is open. */
    whyClosed: whyQueueClosed,

    /** Why a new item would not be sent: the queue is closed or paused. Otherwise undefined. */
    whyNotSent(queue: string): string | undefined {
      const { pausedAt, pausedBy } = subscriptions.find(queue) ?? {}
      const paused =
        pausedAt === undefined ? undefined : `${pausedBy} paused it at ${pausedAt}; resume it first`
      return whyQueueClosed(queue) ?? paused
    },

    /** Sends a test message once, directly instead of through the queue. */
    async test(subscription: PushSubscription, signal: AbortSignal): Promise<Attempt> {
      const { topicId: livestreamId, institutionId } = subscription
      const messageId = `test-${randomUUID()}`
      const time = new Date(clock()).toISOString()
      const event = { event: testEvent, id: messageId, test: true, title: 'Test message', start: time }
      const started = performance.now()
      const { status, reason } = await send(subscription, {
        data: Buffer.from(JSON.stringify(event)),
        attributes: { event: testEvent, livestreamId, institutionId, test: 'true' },
        messageId,
        publishedAt: clock(),
        signal,
      })
      return { messageId, time, status, duration: Math.round(performance.now() - started), reason }
    },
  }

  /**
   * Where the items of a queue go. `gone`: the webhook was removed. Undefined: the queue belongs to no webhook, or its
   * webhook gets nothing at the moment.
   */
  function targetOf(queue: string): ReturnType<TargetOf> {
    const subscription = subscriptions.find(queue)
    if (!subscription) return isSubscriptionName(queue) ? 'gone' : undefined
    const closed = whyClosed()
    if (closed !== undefined) return { closed }
    const { disabledAt, pausedAt, isBeginning } = subscription
    if (disabledAt !== undefined || pausedAt !== undefined || isBeginning) return undefined
    const target = targets.get(subscription) ?? toTarget(subscription)
    targets.set(subscription, target)
    return target
  }

  function toTarget(subscription: PushSubscription): Target {
    const { maxAge, delay, ordering } = subscription
    return {
      endpoint: new URL(subscription.url).origin,
      owner: subscription.institutionId,
      ...(maxAge !== undefined && { maxAge }),
      ...(delay !== undefined && { delayMs: delay }),
      ...(ordering === 'livestream' && { lanes: mostLanes }),
      deliver: (item, payload, signal) => deliver(subscription, item, payload, signal),
    }
  }

  function whyQueueClosed(queue: string): string | undefined {
    const target = targetOf(queue)
    return isClosed(target) ? target.closed : undefined
  }

  function deliver(
    subscription: PushSubscription,
    item: WorkItem,
    data: Buffer,
    signal: AbortSignal,
  ): Promise<AttemptOutcome> {
    const { details: attributes, messageId, enqueuedAt, acceptedAt: publishedAt = enqueuedAt } = item
    return send(subscription, { data, attributes, messageId, publishedAt, signal })
  }

  async function send(
    { name, url, serviceAccount, ackDeadlineSeconds }: PushSubscription,
    message: Pick<Parameters<typeof pushBody>[0], 'data' | 'attributes' | 'messageId' | 'publishedAt'> & {
      signal: AbortSignal
    },
  ): Promise<AttemptOutcome> {
    const body = pushBody({ ...message, subscription: name })
    const token = await tokenFor(url, serviceAccount)
    // As it is now: the attempt may have been planned before the secret was made.
    const { secrets } = subscriptions.find(name) ?? {}
    return post({
      url,
      body,
      headers: signatureHeaders({ messageId: message.messageId, body }, secrets, clock()),
      token,
      deadlineMs: ackDeadlineSeconds * 1000,
      signal: message.signal,
    })
  }
}
