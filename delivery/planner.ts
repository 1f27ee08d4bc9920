import type { Accepted, WorkPlanner } from '../validator/settlement.ts'
import { enabledTargets, type PluginTarget, queueOf } from './plugins/targets.ts'
import type { WorkGroup } from './queue/work-item.ts'
import type { WorkQueues } from './queue/work-queues.ts'
import { attributesOf, coversKind, coversType } from './webhook/selected.ts'
import { isOfBeginning, type PushSubscription } from './webhook/subscription.ts'
import type { PushSubscriptions } from './webhook/subscriptions.ts'
import { distances, elementOf } from './worth/element.ts'

/** Decides to which webhooks and plugin targets the hub sends an accepted event. */
export function createPlanner(parts: {
  subscriptions: Pick<PushSubscriptions, 'topics' | 'ofTopic'>
  targets: readonly PluginTarget[]
  queues: Pick<WorkQueues, 'plan'>
  /** Why the hub sends nothing to webhooks any more. Undefined: it still sends. */
  whyClosed: () => string | undefined
}): WorkPlanner {
  const { subscriptions, targets, queues, whyClosed } = parts

  return {
    withWebhooks: subscriptions.topics,
    isForAll: targets.some(({ autoEnable }) => autoEnable),
    pluginTargets: new Set(targets.map(({ type }) => type)),

    plan(accepted, { once, isRepeatedWhole }) {
      const groups = [...toWebhooks(accepted, isRepeatedWhole), ...toTargets(accepted)]
      return groups.length > 0 ? queues.plan({ messageId: accepted.id, once, groups }) : []
    },
  }

  function toWebhooks(accepted: Accepted, isRepeated: boolean): WorkGroup[] {
    const { event, id, kind, livestreamIds } = accepted
    if (whyClosed() !== undefined) return []
    const wanting = (livestreamId: string) =>
      subscriptions
        .ofTopic(livestreamId)
        .filter((one) => coversKind(one, kind) && coversType(one, kind, event))
        .filter((one) => !(isRepeated && isOfBeginning(one, id)))
    const several = new Map<PushSubscription, number[]>()
    const groups = livestreamIds.flatMap((livestreamId, nth) => {
      const owed: PushSubscription[] = []
      for (const one of wanting(livestreamId)) {
        if (one.livestreams === undefined) owed.push(one)
        else several.set(one, [...(several.get(one) ?? []), nth])
      }
      return groupOf(accepted, livestreamId, owed, [nth])
    })
    // An event for several livestreams of a webhook is one item.
    return [...groups, ...[...several].flatMap(([one, nths]) => groupOf(accepted, one.name, [one], nths))]
  }

  /** The items of webhooks that get the event for the same livestreams: `nths` of it. */
  function groupOf(
    { event, kind, institutionId, livestreamIds }: Accepted,
    scope: string,
    owed: readonly PushSubscription[],
    nths: readonly number[],
  ): WorkGroup[] {
    const [first] = owed
    const [nth = 0] = nths
    if (!first) return []
    const ids = nths.flatMap((one) => livestreamIds[one] ?? [])
    const details = attributesOf(first, { event: kind.name, livestreamIds: ids, institutionId })
    const distances = Object.fromEntries(nths.map((one) => [livestreamIds[one], one - nth]))
    const isJudged = owed.some(({ maxAge }) => maxAge === 'element')
    const element = isJudged ? elementOf(event, kind, distances) : undefined
    const items = owed.map(({ name, maxAge }) => ({
      queue: name,
      details,
      ...(element && maxAge === 'element' && { element }),
    }))
    return [{ scope, content: { nth }, items }]
  }

  /** One item for each plugin target, however many livestreams the event has. */
  function toTargets({ event, kind, institutionId, livestreamIds }: Accepted): WorkGroup[] {
    const enabled = enabledTargets(event, kind, targets)
    if (enabled.length === 0) return []
    const element = elementOf(event, kind, distances(livestreamIds))
    return enabled.map(({ type, plugin }) => ({
      scope: queueOf(type),
      // The messages for all livestreams have the same payload.
      content: { nth: 0 },
      items: [{ queue: queueOf(type), details: { plugin, institutionId }, element }],
    }))
  }
}
