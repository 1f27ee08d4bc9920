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
   * `settled`: the event does not wait, is no dead letter, and no attempt that delivered it is kept any more. It was
   * delivered, or the queue dropped it to keep within its limits.
   */
  state: 'delivered' | 'waiting' | 'retrying' | 'dead letter' | 'settled'
  /** Why the event is held back while it waits for a webhook; null: nothing holds it back. */
  held: 'paused' | 'disabled' | null
  /** The first event of the queue, if this one waits behind it; null: this one is first, set aside or does not wait. */
  behind: string | null
  /** Newest first. */
  attempts: Attempt[]
}

/** The parts of an accepted event by which its deliveries are found. */
export interface AcceptedEvent {
  id: string
  /** Full name of the kind of event. */
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
    // A delivery that is not owed is listed only if the queue has a trace of the event. For a webhook may have got the
    // event by a replay, and a target gets only some events.
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
