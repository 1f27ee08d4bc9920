import type { Accepted, WorkPlanner } from '../validator/settlement.ts'
import { enabledTargets, type PluginTarget, queueOf } from './plugins/targets.ts'
import type { WorkGroup } from './queue/work-item.ts'
import type { WorkQueues } from './queue/work-queues.ts'
import { isOfBeginning, pushedKinds } from './webhook/subscription.ts'
import type { PushSubscriptions } from './webhook/subscriptions.ts'

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
    { id, kind, institutionId, livestreamIds }: Accepted,
    isRepeated: boolean,
  ): WorkGroup[] {
    if (!pushedKinds.includes(kind) || whyClosed() !== undefined) return []
    return livestreamIds.flatMap((livestreamId, nth) => {
      const details = { event: kind.name, livestreamId, institutionId }
      const all = subscriptions.ofTopic(livestreamId)
      const owed = isRepeated ? all.filter((subscription) => !isOfBeginning(subscription, id)) : all
      const items = owed.map(({ name }) => ({ queue: name, details }))
      return items.length > 0 ? [{ scope: livestreamId, content: { nth }, items }] : []
    })
  }

  /** One item for each plugin target, however many livestreams the event has. */
  function toTargets({ event, kind, institutionId }: Accepted): WorkGroup[] {
    return enabledTargets(event, kind, targets).map(({ type, plugin }) => ({
      scope: queueOf(type),
      // The messages for all livestreams have the same payload.
      content: { nth: 0 },
      items: [{ queue: queueOf(type), details: { plugin, institutionId } }],
    }))
  }
}
