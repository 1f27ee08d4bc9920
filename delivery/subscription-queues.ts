import type { Calls } from '../store/nodes/calls.ts'
import type { Log } from '../telemetry/log.ts'
import type { Attempts } from './attempts.ts'
import type { WorkQueues } from './queue/work-queues.ts'
import { retryChange } from './runner/retry.ts'
import type { Standings } from './webhook/standing.ts'
import type { AsOwner, PushSubscription, SubscriptionRequest } from './webhook/subscription.ts'
import type { PushSubscriptions } from './webhook/subscriptions.ts'

/** Changes subscriptions together with their queues. */
export function createSubscriptionQueues(parts: {
  subscriptions: PushSubscriptions
  queues: Pick<WorkQueues, 'drop'>
  attempts: Pick<Attempts, 'drop'>
  standings: Pick<Standings, 'removeIn'>
  calls: Pick<Calls, 'askOthers'>
  beginnings: { look(name: string): void }
  runner: { retryNow(queue: string): void }
  log: Log
}) {
  const { subscriptions, queues, attempts, standings, calls, beginnings, runner, log } = parts

  return {
    /**
     * Adds a webhook. With `from`, the webhook first gets the events accepted since that time. Undefined: the
     * institution has too many webhooks.
     */
    async add(request: SubscriptionRequest): Promise<PushSubscription | undefined> {
      const added = await subscriptions.add(request)
      if (added) beginnings.look(added.name)
      return added
    },

    /** Removes a subscription with its queue. False: the institution has no such subscription. */
    async remove(institutionId: string, name: string): Promise<boolean> {
      if (!subscriptions.get(institutionId, name)) return false
      const isRemoved = await standings.removeIn(name, async (removal) => {
        const alongside = [...(await attempts.drop(name)), removal, retryChange(name)]
        return subscriptions.remove(institutionId, name, alongside)
      })
      if (!isRemoved) return false
      try {
        // A delivery that ended meanwhile may have left new traces.
        await standings.removeIn(name, async (removal) =>
          queues.drop(name, [...(await attempts.drop(name)), removal]),
        )
      } catch (err) {
        // The subscription is gone: the node of its queue will remove the rest.
        log.warn({ err, queue: name }, 'queue of a removed subscription not removed yet')
      }
      runner.retryNow(name)
      return true
    },

    /** Pauses a webhook on every node. A delivery under way goes on. True if the webhook was not paused yet. */
    async pause(name: string, by: string, as: AsOwner = {}): Promise<boolean> {
      if (!(await subscriptions.pause(name, by, as))) return false
      // Wait for the answers of the other nodes. A node that answers has received the pause, which was sent before the
      // question. A node that does not answer learns of the pause later.
      await calls.askOthers('queues', null).catch(() => undefined)
      return true
    },

    /** Ends the pause of a webhook. False: there is no pause that `as` may end. */
    async resume(name: string, as: AsOwner = {}): Promise<boolean> {
      const isResumed = await subscriptions.resume(name, [retryChange(name)], as)
      if (isResumed) runner.retryNow(name)
      return isResumed
    },
  }
}
