import type { Accepted, WorkPlanner } from '../validator/settlement.ts'
import { enabledTargets, type PluginTarget, queueOf } from './plugins/targets.ts'
import type { WorkGroup } from './queue/work-item.ts'
import type { WorkQueues } from './queue/work-queues.ts'
import { attributesOf } from './webhook/selected.ts'
import { isOfBeginning, type PushSubscription } from './webhook/subscription.ts'
import type { PushSubscriptions } from './webhook/subscriptions.ts'
import { createWanting } from './webhook/wanting.ts'
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
  const wantingOf = createWanting(subscriptions)

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
    const isLeftOut = isRepeated ? (one: PushSubscription) => isOfBeginning(one, id) : undefined
    const several = new Map<PushSubscription, number[]>()
    const groups = livestreamIds.flatMap((livestreamId, nth) => {
      const wanting = wantingOf(livestreamId, kind, event, isLeftOut)
      for (const one of wanting.several) several.set(one, [...(several.get(one) ?? []), nth])
      const { alone: queues, example, isJudged } = wanting
      return example ? [groupOf(accepted, { scope: livestreamId, queues, example, isJudged }, [nth])] : []
    })
    // An event for several livestreams of a webhook is one item.
    const ofSeveral = [...several].map(([one, nths]) => {
      const isJudged = one.maxAge === 'element'
      return groupOf(accepted, { scope: one.name, queues: [one.name], example: one, isJudged }, nths)
    })
    return [...groups, ...ofSeveral]
  }

  /** The items of webhooks that get the event for the same livestreams: `nths` of it. */
  function groupOf(
    { event, kind, institutionId, livestreamIds }: Accepted,
    webhooks: {
      scope: string
      queues: readonly string[]
      /** One of the webhooks: all get the same attributes. */
      example: PushSubscription
      /** Whether one of them asks when the event is over. */
      isJudged: boolean
    },
    nths: readonly number[],
  ): WorkGroup {
    const { scope, queues, example, isJudged } = webhooks
    const [nth = 0] = nths
    const ids = nths.flatMap((one) => livestreamIds[one] ?? [])
    const details = attributesOf(example, { event: kind.name, livestreamIds: ids, institutionId })
    const distances = Object.fromEntries(nths.map((one) => [livestreamIds[one], one - nth]))
    const element = isJudged ? elementOf(event, kind, distances) : undefined
    return { scope, content: { nth }, queues, details, element }
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
      queues: [queueOf(type)],
      details: { plugin, institutionId },
      element,
    }))
  }
}
