import type { Attempt } from '../event/outcome-schemas.ts'
import type { Change, Store } from '../store/store.ts'
import type { Attempts } from './attempts.ts'
import type { PushSender } from './webhook/push.ts'
import type { Standings } from './webhook/standing.ts'
import type { PushSubscription } from './webhook/subscription.ts'

/** Sends test messages to webhooks directly, past their queues. An acknowledged test enables its webhook again. */
export function createTestMessages(parts: {
  store: Pick<Store, 'commit'>
  find: (name: string) => PushSubscription | undefined
  push: Pick<PushSender, 'test'>
  attempts: Pick<Attempts, 'add'>
  standings: Pick<Standings, 'tested'>
  /** Why the hub sends nothing to webhooks any more. Undefined: it still sends. */
  whyClosed: () => string | undefined
  /** Maximum number of test messages that may be under way at once. */
  most: number
  /** Enables a webhook. The same commit stores `alongside`. False: the webhook was not disabled. */
  enable: (name: string, alongside: readonly Change[]) => Promise<boolean>
  retry: (name: string) => void
}) {
  const { store, find, push, attempts, standings, whyClosed, most, enable, retry } = parts
  /** The webhooks that are tested now, each with its institution. */
  const testing = new Map<string, string>()
  const stopping = new AbortController()

  return {
    /**
     * Sends a test message. Returns undefined, and sends nothing, if
     * - there is no such webhook,
     * - this webhook is under test already,
     * - too many other webhooks are under test, or
     * - the hub sends nothing to webhooks any more.
     */
    async test(name: string): Promise<Attempt | undefined> {
      const subscription = find(name)
      if (!subscription || testing.has(name) || whyClosed() !== undefined) return undefined
      const { institutionId } = subscription
      const ofInstitution = [...testing.values()].filter((institution) => institution === institutionId)
      // Leave places free for the tests of other institutions.
      if (ofInstitution.length >= most - testing.size) return undefined
      testing.set(name, institutionId)
      try {
        const attempt = await push.test(subscription, stopping.signal)
        // The subscription may have been removed meanwhile.
        if (!find(name)) return attempt
        const noted = [...(await attempts.add(name, attempt)), ...standings.tested(name, attempt.status)]
        const isEnabled = attempt.reason === null && (await enable(name, noted))
        if (!isEnabled && find(name)) await store.commit(noted)
        if (attempt.reason === null) retry(name)
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
