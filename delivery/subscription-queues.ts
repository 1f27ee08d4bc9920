import type { Calls } from '../store/nodes/calls.ts'
import type { Log } from '../telemetry/log.ts'
import type { Attempts } from './attempts.ts'
import type { WorkQueues } from './queue/work-queues.ts'
import { retryChange } from './runner/retry.ts'
import type { Standings } from './webhook/standing.ts'
import type { PushSubscription, SubscriptionRequest } from './webhook/subscription.ts'
import type { PushSubscriptions } from './webhook/subscriptions.ts'

/** Changes subscriptions together with their queues. */
export function createSubscriptionQueues(parts: {
  subscriptions: PushSubscriptions
  queues: Pick<WorkQueues, 'drop'>
  attempts: Pick<Attempts, 'drop'>
  standings: Pick<Standings, 'removal' | 'forget'>
  calls: Pick<Calls, 'askOthers'>
  beginnings: { look(name: string): void }
  runner: { retryNow(queue: string): void }
  log: Log
}) {
  const { subscriptions, queues, attempts, standings, calls, beginnings, runner, log } = parts

  return {
    /**
     * Adds a webhook. With `from`, the webhook first gets the events accepted since that time. Returns undefined if the
     * institution has too many webhooks, of this livestream or in all.
     */
    async add(request: SubscriptionRequest): Promise<PushSubscription | undefined> {
      const added = await subscriptions.add(request)
      if (added) beginnings.look(added.name)
      return added
    },

    /** Removes a subscription with its queue. False: the institution has no such subscription. */
    async remove(institutionId: string, name: string): Promise<boolean> {
      if (!subscriptions.get(institutionId, name)) return false
      const traces = async () => [...(await attempts.drop(name)), standings.removal(name)]
      const alongside = [...(await traces()), retryChange(name)]
      if (!(await subscriptions.remove(institutionId, name, alongside))) return false
      standings.forget(name)
      try {
        // A delivery that ended meanwhile may have stored an attempt or a standing again: remove these traces too.
        await queues.drop(name, await traces())
        standings.forget(name)
      } catch (err) {
        // The subscription is removed, so the caller hears of no failure. The node of the queue removes the rest.
        log.warn({ err, queue: name }, 'queue of a removed subscription not removed yet')
      }
      runner.retryNow(name)
      return true
    },

    /** Stops sending to a webhook, on every node. Does not cut short a delivery. True if the webhook was not paused. */
    async pause(name: string, by: string): Promise<boolean> {
      if (!(await subscriptions.pause(name, by))) return false
      // The question serves only to wait until the other nodes know of the pause, so its answers are ignored. Each node
      // receives the pause before the question, and then answers. A node that does not answer learns of the pause
      // later, from the store.
      await calls.askOthers('queues', null).catch(() => undefined)
      return true
    },

    /** Ends the pause of a webhook: the hub sends the waiting items, in their order. True if the webhook was paused. */
    async resume(name: string): Promise<boolean> {
      const isResumed = await subscriptions.resume(name, [retryChange(name)])
      if (isResumed) runner.retryNow(name)
      return isResumed
    },
  }
}
