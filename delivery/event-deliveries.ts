import { kindOf } from '../event/kind.ts'
import type { PluginTarget } from './plugins/targets.ts'
import type { Attempt, DeadLetter } from './queue/work-item.ts'
import { pushedKinds } from './webhook/subscription.ts'
import type { PushSubscriptions } from './webhook/subscriptions.ts'

/** What became of an event at one webhook or plugin target, as far as that is kept. */
export interface EventDelivery {
  queue: string
  /** The URL of a webhook. */
  target: string | null
  /** Whom to write to about a webhook. */
  contact: string | null
  /**
   * `settled`: it neither waits nor was given up, and the attempts that are kept are later ones. It was delivered,
   * unless its queue has dropped messages.
   */
  state: 'delivered' | 'waiting' | 'retrying' | 'dead letter' | 'settled'
  /** It waits in its line for this event, which is tried first; null: it is the first itself, or does not wait there. */
  behind: string | null
  /** Newest first. */
  attempts: Attempt[]
}

/** An accepted event, as far as its deliveries are found by it. */
export interface AcceptedEvent {
  id: string
  /** Full name of its kind. */
  event: string
  /** Milliseconds since the epoch. */
  at: number
  livestreamIds: readonly string[]
}

/** Finds what became of an event at webhooks and plugin targets. */
export function createEventDeliveries(parts: {
  subscriptions: Pick<PushSubscriptions, 'ofTopic'>
  plugins: { queues: readonly { name: string; target: PluginTarget }[] }
  queues: {
    holds(queue: string, messageId: string): { behind: string | null } | undefined
    deadLetters(queue: string): readonly Pick<DeadLetter, 'messageId'>[]
  }
  attempts: (queue: string) => Promise<readonly Attempt[]>
}) {
  const { subscriptions, plugins, queues } = parts

  return async (event: AcceptedEvent): Promise<EventDelivery[]> => {
    const kind = kindOf(event.event)
    const isPushed = kind !== undefined && pushedKinds.includes(kind)
    const subscribed = isPushed ? event.livestreamIds.flatMap(subscriptions.ofTopic) : []
    const toWebhooks = subscribed.map(async ({ name, url, contact, createdAt, from }) => ({
      delivery: await deliveryTo(name, { target: url, contact }, event),
      isOwed: Date.parse(from ?? createdAt) <= event.at,
    }))
    const toTargets = plugins.queues.map(async ({ name, target }) => ({
      delivery: await deliveryTo(name, { target: target.url ?? target.driver ?? null, contact: null }, event),
      isOwed: false,
    }))
    const all = [...(await Promise.all(toWebhooks)), ...(await Promise.all(toTargets))]
    // Where it was not owed, only what is known of this very event says that it went there: a webhook may have got it by
    // a replay, and to a target it goes or not.
    return all.flatMap(({ delivery, isOwed }) => (isOwed || delivery.state !== 'settled' ? [delivery] : []))
  }

  async function deliveryTo(
    queue: string,
    of: Pick<EventDelivery, 'target' | 'contact'>,
    { id }: AcceptedEvent,
  ): Promise<EventDelivery> {
    const attempts = (await parts.attempts(queue)).filter(({ messageId }) => messageId === id)
    const state = stateOf(queue, id, attempts)
    const behind = state === 'dead letter' ? null : (queues.holds(queue, id)?.behind ?? null)
    return { queue, ...of, state, behind, attempts }
  }

  function stateOf(queue: string, id: string, attempts: Attempt[]): EventDelivery['state'] {
    if (queues.deadLetters(queue).some(({ messageId }) => messageId === id)) return 'dead letter'
    if (queues.holds(queue, id)) return attempts.length > 0 ? 'retrying' : 'waiting'
    return attempts.some(({ reason }) => reason === null) ? 'delivered' : 'settled'
  }
}
