import type { Store } from '../store/store.ts'
import type { Attempts } from './attempts.ts'
import type { Attempt } from './queue/work-item.ts'
import type { Push } from './webhook/push.ts'
import type { Standings } from './webhook/standing.ts'
import type { PushSubscription } from './webhook/subscription.ts'

/** Sends test messages to webhooks, past their queues. An acknowledged test enables its webhook again. */
export function createTestMessages(parts: {
  store: Pick<Store, 'commit'>
  find: (name: string) => PushSubscription | undefined
  push: Pick<Push, 'test'>
  attempts: Pick<Attempts, 'add'>
  standings: Pick<Standings, 'tested'>
  /** Why nothing is sent to webhooks any more, or undefined. */
  whyClosed: () => string | undefined
  /** How many test messages may be under way. */
  most: number
  enable: (name: string) => Promise<boolean>
  retry: (name: string) => void
}) {
  const { store, find, push, attempts, standings, whyClosed, most, enable, retry } = parts
  /** The institutions of the webhooks that are tested now. */
  const testing = new Map<string, string>()
  const stopping = new AbortController()

  return {
    /** Undefined: a test of this webhook is under way already, or too many others are, or push has retired. */
    async test(name: string): Promise<Attempt | undefined> {
      const subscription = find(name)
      if (!subscription || testing.has(name) || whyClosed() !== undefined) return undefined
      const { institutionId } = subscription
      const ofInstitution = [...testing.values()].filter((institution) => institution === institutionId)
      // An institution gets another test only if it has fewer than are free, so that others get some as well.
      if (ofInstitution.length >= most - testing.size) return undefined
      testing.set(name, institutionId)
      try {
        const attempt = await push.test(subscription, stopping.signal)
        // The subscription may have been removed meanwhile.
        if (find(name)) {
          const noted = standings.tested(name, attempt.status)
          await store.commit([...(await attempts.add(name, attempt)), ...noted])
        }
        if (attempt.reason === null) {
          await enable(name)
          retry(name)
        }
        return attempt
      } finally {
        testing.delete(name)
      }
    },

    /** Ends the tests that are under way. */
    stop(): void {
      stopping.abort()
    },
  }
}
