import { kindOf } from '../event/kind.ts'
import type { PluginTarget } from './plugins/targets.ts'
import type { Attempt, DeadLetter } from './queue/work-item.ts'
import { type PushSubscription, pushedKinds } from './webhook/subscription.ts'
import type { PushSubscriptions } from './webhook/subscriptions.ts'

/** The delivery of an event to one webhook or plugin target, as far as it is kept. */
export interface EventDelivery {
  queue: string
  /** The URL of a webhook. */
  target: string | null
  /** Whom to write to about a webhook. */
  contact: string | null
  /**
   * `settled`: it does not wait, it is no dead letter, and no attempt that delivered it is kept any more. It was
   * delivered, unless its queue has dropped messages.
   */
  state: 'delivered' | 'waiting' | 'retrying' | 'dead letter' | 'settled'
  /** Why nothing is sent to a webhook that it waits for. */
  held: 'paused' | 'disabled' | null
  /** The event that is first in the line where this one waits; null: this one is the first, or waits in no line. */
  behind: string | null
  /** Newest first. */
  attempts: Attempt[]
}

/** The parts of an accepted event by which its deliveries are found. */
export interface AcceptedEvent {
  id: string
  /** Full name of its kind. */
  event: string
  /** Milliseconds since the epoch. */
  at: number
  livestreamIds: readonly string[]
}

/** Finds the deliveries of an event to webhooks and plugin targets. */
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
    const toWebhooks = subscribed.map(async (subscription) => {
      const { name, url, contact, createdAt, from } = subscription
      const of = { target: url, contact, held: heldBy(subscription) }
      return {
        delivery: await deliveryTo(name, of, event),
        isOwed: Date.parse(from ?? createdAt) <= event.at,
      }
    })
    const toTargets = plugins.queues.map(async ({ name, target }) => {
      const of = { target: target.url ?? target.driver ?? null, contact: null, held: null }
      return { delivery: await deliveryTo(name, of, event), isOwed: false }
    })
    const all = [...(await Promise.all(toWebhooks)), ...(await Promise.all(toTargets))]
    // Without being owed, a delivery is listed only with a trace of this very event: a webhook may have got it by a
    // replay, and a target gets some events only.
    return all.flatMap(({ delivery, isOwed }) => (isOwed || delivery.state !== 'settled' ? [delivery] : []))
  }

  async function deliveryTo(
    queue: string,
    { held, ...of }: Pick<EventDelivery, 'target' | 'contact' | 'held'>,
    { id }: AcceptedEvent,
  ): Promise<EventDelivery> {
    const attempts = (await parts.attempts(queue)).filter(({ messageId }) => messageId === id)
    const state = stateOf(queue, id, attempts)
    const waits = state === 'waiting' || state === 'retrying'
    const behind = waits ? (queues.holds(queue, id)?.behind ?? null) : null
    return { queue, ...of, state, held: waits ? held : null, behind, attempts }
  }

  function stateOf(queue: string, id: string, attempts: Attempt[]): EventDelivery['state'] {
    if (queues.deadLetters(queue).some(({ messageId }) => messageId === id)) return 'dead letter'
    if (queues.holds(queue, id)) return attempts.length > 0 ? 'retrying' : 'waiting'
    return attempts.some(({ reason }) => reason === null) ? 'delivered' : 'settled'
  }
}

function heldBy({
  pausedAt,
  disabledAt,
}: Pick<PushSubscription, 'pausedAt' | 'disabledAt'>): EventDelivery['held'] {
  if (pausedAt !== undefined) return 'paused'
  return disabledAt === undefined ? null : 'disabled'
}
