import { randomUUID } from 'node:crypto'
import { type EventKind, eventKinds, kindOf } from '../../event/kind.ts'
import { radioTopic } from '../../event/topic.ts'
import type { Attempt, EarlierMessage, WorkGroup, WorkItem } from '../queue/work-item.ts'
import type { Outcome, TargetOf } from '../target.ts'
import { pushBody } from './push-message.ts'
import { isOfBeginning, isSubscriptionName, type PushSubscription } from './subscription.ts'
import type { PushSubscriptions } from './subscriptions.ts'
import type { Post } from './webhook.ts'

export type Push = ReturnType<typeof createPush>

/** Name of the event in a test message: receivers filter by type (service.md §1), and no screen changes. */
const testEvent = 'de.org.hub.v1.test'

/** Track events only (design.md §7). */
const pushed = eventKinds.filter((kind) => kind.class === 'track')

/** Pushes events to the webhooks of subscriptions. */
export function createPush(parts: {
  subscriptions: PushSubscriptions
  post: Post
  tokenFor: (audience: string, account: string) => Promise<string>
  /** Why nothing is sent to webhooks any more, or undefined. */
  whyClosed: () => string | undefined
  clock: () => number
}) {
  const { subscriptions, post, tokenFor, whyClosed, clock } = parts

  return {
    /** The items that follow from an accepted event. */
    groupsFor(
      accepted: { id: string; kind: EventKind; institutionId: string; livestreamIds: readonly string[] },
      isRepeated: boolean,
    ): WorkGroup[] {
      const { id, kind, institutionId, livestreamIds } = accepted
      if (!pushed.includes(kind) || whyClosed() !== undefined) return []
      return livestreamIds.map((livestreamId, nth) => {
        const details = { event: kind.name, livestreamId, institutionId }
        const all = subscriptions.ofTopic(livestreamId)
        const owed = isRepeated ? all.filter((subscription) => !isOfBeginning(subscription, id)) : all
        const items = owed.map(({ name }) => ({ queue: name, details }))
        return { scope: livestreamId, content: { nth }, items }
      })
    },

    /** The subscriptions that such an event goes to. */
    subscriptionsFor: (of: { event: string; livestreamIds: readonly string[] }): PushSubscription[] =>
      kindOf(of.event)?.class === 'track' ? of.livestreamIds.flatMap(subscriptions.ofTopic) : [],

    /** Where the journal has what the webhooks of a livestream get. */
    topicsOf: (livestreamId: string): string[] => pushed.map((kind) => radioTopic(livestreamId, kind)),

    /** What they get of messages that the journal has of it. */
    earlier(
      livestreamId: string,
      messages: readonly { topic: string; position: number; at: number }[],
    ): EarlierMessage[] {
      const kinds = new Map(pushed.map((kind) => [radioTopic(livestreamId, kind), kind]))
      return messages.flatMap(({ topic, position, at }) => {
        const kind = kinds.get(topic)
        return kind ? [{ position, at, describe: (message) => describe(kind, livestreamId, message) }] : []
      })
    },

    /** Where the items of a queue go. Undefined: it is none of ours, or nothing is sent to it at the moment. */
    targetOf(queue: string): ReturnType<TargetOf> {
      const subscription = subscriptions.find(queue)
      if (!subscription) return isSubscriptionName(queue) ? 'gone' : undefined
      const closed = whyClosed()
      if (closed !== undefined) return { closed }
      const { disabledAt, pausedAt, isBeginning } = subscription
      if (disabledAt !== undefined || pausedAt !== undefined || isBeginning) return undefined
      return {
        endpoint: new URL(subscription.url).origin,
        owner: subscription.institutionId,
        deliver: (item, payload, signal) => deliver(subscription, item, payload, signal),
      }
    },

    /** Sends a message that is marked as a test, once, past the queue. */
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

  function deliver(
    subscription: PushSubscription,
    item: WorkItem,
    data: Buffer,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { details: attributes, messageId, enqueuedAt, acceptedAt: publishedAt = enqueuedAt } = item
    return send(subscription, { data, attributes, messageId, publishedAt, signal })
  }

  async function send(
    { name, url, serviceAccount, ackDeadlineSeconds }: PushSubscription,
    message: Pick<Parameters<typeof pushBody>[0], 'data' | 'attributes' | 'messageId' | 'publishedAt'> & {
      signal: AbortSignal
    },
  ): Promise<Outcome> {
    return post({
      url,
      body: pushBody({ ...message, subscription: name }),
      token: await tokenFor(url, serviceAccount),
      deadlineMs: ackDeadlineSeconds * 1000,
      signal: message.signal,
    })
  }
}

/** The same as when the event was accepted. Of a message of the former release only the event may say who published it. */
function describe(
  { name }: EventKind,
  livestreamId: string,
  { payload, institutionId }: Parameters<EarlierMessage['describe']>[0],
) {
  const { id, services } = JSON.parse(payload.toString())
  const { institutionId: named } =
    services.find((service: { id?: unknown }) => service.id === livestreamId) ?? {}
  const details = { event: name, livestreamId, institutionId: institutionId ?? named }
  return { messageId: String(id), details }
}
