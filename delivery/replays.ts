import type { EarlierMessage } from './queue/work-item.ts'
import type { WorkQueues } from './queue/work-queues.ts'
import type { PushSender } from './webhook/push.ts'
import type { Selected } from './webhook/selected.ts'
import type { PushSubscription } from './webhook/subscription.ts'

/** Sends dead letters or earlier events again, and enables a disabled webhook. */
export function createReplays(parts: {
  find: (queue: string) => PushSubscription | undefined
  enable: (queue: string) => Promise<boolean>
  queues: Pick<WorkQueues, 'replay' | 'repeat'>
  earlierOf: (selected: Selected, since: number) => Promise<EarlierMessage[]>
  push: Pick<PushSender, 'whyNotSent'>
  retry: (queue: string) => void
}) {
  const { find, enable, queues, earlierOf, push, retry } = parts

  return {
    /** Sends the dead letters of a queue again: all, or those of event `messageId`. Returns how many. */
    async replay(queue: string, messageId?: string): Promise<number> {
      if (push.whyNotSent(queue) !== undefined) return 0
      await enable(queue)
      try {
        return await queues.replay(queue, messageId)
      } finally {
        // Try the queue even if `replay` failed: some letters may have become items again.
        retry(queue)
      }
    },

    /**
     * Sends events again that the hub accepted since `since`, milliseconds since the epoch. Before any change, calls
     * `first` with the number of events to expect. Returns how many events it put into the queue.
     */
    async replaySince(
      queue: string,
      since: number,
      first: (count: number) => Promise<void> = async () => undefined,
    ): Promise<number> {
      const subscription = find(queue)
      if (!subscription || push.whyNotSent(queue) !== undefined) return 0
      let isEnabled = false
      try {
        return await queues.repeat(queue, await earlierOf(subscription, since), async (count) => {
          await first(count)
          await enable(queue)
          isEnabled = true
        })
      } finally {
        if (isEnabled) retry(queue)
      }
    },
  }
}
