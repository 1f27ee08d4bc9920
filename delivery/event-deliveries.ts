import type { Static } from 'typebox'
import { kindByName } from '../event/kind.ts'
import type { Attempt, receiver } from '../event/outcome-schemas.ts'
import type { PluginTarget } from './plugins/targets.ts'
import type { WorkQueues } from './queue/work-queues.ts'
import { placeOf } from './queue-list.ts'
import { coversKind } from './webhook/selected.ts'
import type { PushSubscription } from './webhook/subscription.ts'
import type { PushSubscriptions } from './webhook/subscriptions.ts'

/** What the hub still knows about the delivery of an event to one webhook or plugin target. */
export type EventDelivery = Static<typeof receiver>

/** The fields of an accepted event that the hub needs to find its deliveries. */
interface AcceptedEvent {
  id: string
  /** Full name of the kind of event, like `de.org.hub.v1.radio.track.playing`. */
  event: string
  /** When the hub accepted the event, milliseconds since the epoch. */
  at: number
  livestreamIds: readonly string[]
}

/** Finds the deliveries of an event to webhooks and plugin targets. */
export function createEventDeliveries(parts: {
  subscriptions: Pick<PushSubscriptions, 'ofTopic'>
  plugins: { queues: readonly { name: string; target: PluginTarget }[] }
  queues: Pick<WorkQueues, 'holds' | 'deadLetters'>
  attempts: (queue: string) => Promise<readonly Attempt[]>
}) {
  const { subscriptions, plugins, queues } = parts

  return async (event: AcceptedEvent): Promise<EventDelivery[]> => {
    const kind = kindByName.get(event.event)
    const all = new Set(event.livestreamIds.flatMap(subscriptions.ofTopic))
    const subscribed = [...all].filter((one) => kind !== undefined && coversKind(one, kind))
    const toWebhooks = subscribed.map(async (subscription) => {
      const { name, url, contact, createdAt, from, types } = subscription
      const of = { target: url, contact, held: heldBy(subscription) }
      return {
        delivery: await deliveryTo(name, of, event),
        // A webhook gets older events only by a replay, and perhaps not those of other types.
        isOwed: types === undefined && Date.parse(from ?? createdAt) <= event.at,
      }
    })
    const toTargets = plugins.queues.map(async ({ name, target }) => {
      const of = { target: placeOf(target), contact: null, held: null }
      // A plugin target gets only some events.
      return { delivery: await deliveryTo(name, of, event), isOwed: false }
    })
    const deliveries = [...(await Promise.all(toWebhooks)), ...(await Promise.all(toTargets))]
    // If `isOwed` is false, the queue may never have had the event. Such a delivery is listed only if the hub still
    // knows its state.
    return deliveries.flatMap(({ delivery, isOwed }) =>
      isOwed || delivery.state !== 'settled' ? [delivery] : [],
    )
  }

  async function deliveryTo(
    queue: string,
    { held, ...of }: Pick<EventDelivery, 'target' | 'contact' | 'held'>,
    event: AcceptedEvent,
  ): Promise<EventDelivery> {
    const { id } = event
    const log = await parts.attempts(queue)
    const attempts = log.filter(({ messageId, stale }) => stale === undefined && messageId === id)
    const isStale = log.some((line) => hasPassedOver(line, event))
    const state = stateOf(queue, id, attempts, isStale)
    const waits = state === 'waiting' || state === 'retrying'
    const behind = waits ? (queues.holds(queue, id)?.behind ?? null) : null
    return { queue, ...of, state, held: waits ? held : null, behind, attempts }
  }

  function stateOf(queue: string, id: string, attempts: Attempt[], isStale: boolean): EventDelivery['state'] {
    if (queues.deadLetters(queue).some(({ messageId }) => messageId === id)) return 'dead letter'
    if (queues.holds(queue, id)) return attempts.length > 0 ? 'retrying' : 'waiting'
    if (attempts.some(({ reason }) => reason === null)) return 'delivered'
    return isStale ? 'stale' : 'settled'
  }
}

/** Longest time between the acceptance of an event and its item, milliseconds. */
const maxQueuingMs = 1_000

/**
 * Whether a line of the delivery log is a stretch with the event: there is no line for each event (deliveries.md,
 * "Worth"). What the hub delivered of the same time has lines of its own, as long as the log reaches.
 */
function hasPassedOver({ messageId, stale }: Attempt, { id, at, livestreamIds }: AcceptedEvent): boolean {
  if (!stale) return false
  if (messageId === id) return true
  const isOfLivestream = stale.livestreamId === null || livestreamIds.includes(stale.livestreamId)
  return isOfLivestream && at + maxQueuingMs >= Date.parse(stale.first) && at <= Date.parse(stale.last)
}

function heldBy({
  pausedAt,
  disabledAt,
}: Pick<PushSubscription, 'pausedAt' | 'disabledAt'>): EventDelivery['held'] {
  if (pausedAt !== undefined) return 'paused'
  return disabledAt === undefined ? null : 'disabled'
}
