import type { Accepted, WorkPlanner } from '../validator/settlement.ts'
import { enabledTargets, type PluginTarget, queueOf } from './plugins/targets.ts'
import type { WorkGroup } from './queue/work-item.ts'
import type { WorkQueues } from './queue/work-queues.ts'
import { isOfBeginning, pushedKinds } from './webhook/subscription.ts'
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

  function toWebhooks(
    { event, id, kind, institutionId, livestreamIds }: Accepted,
    isRepeated: boolean,
  ): WorkGroup[] {
    if (!pushedKinds.includes(kind) || whyClosed() !== undefined) return []
    return livestreamIds.flatMap((livestreamId, nth) => {
      const details = { event: kind.name, livestreamId, institutionId }
      const all = subscriptions.ofTopic(livestreamId)
      const owed = isRepeated ? all.filter((subscription) => !isOfBeginning(subscription, id)) : all
      const isJudged = owed.some(({ maxAge }) => maxAge === 'element')
      const element = isJudged ? elementOf(event, kind, { [livestreamId]: 0 }) : undefined
      const items = owed.map(({ name, maxAge }) => ({
        queue: name,
        details,
        ...(element && maxAge === 'element' && { element }),
      }))
      return items.length > 0 ? [{ scope: livestreamId, content: { nth }, items }] : []
    })
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
