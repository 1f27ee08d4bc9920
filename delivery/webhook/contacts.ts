import { untilDone } from '../../store/until-done.ts'
import type { Log } from '../../telemetry/log.ts'
import type { PushSubscription } from './subscription.ts'
import type { PushSubscriptions } from './subscriptions.ts'

/** Informs a subscription's contact that the hub has disabled the subscription. Never rejects. */
export type TellContact = (subscription: PushSubscription) => Promise<void>

/**
 * Informs a subscription's contact that the hub has disabled the subscription. Of all nodes, only the one that `toldBy`
 * names does so: docs/decisions, "The contact hears of it once".
 */
export function createContacts(parts: {
  subscriptions: Pick<PushSubscriptions, 'find' | 'list' | 'disable' | 'passTelling'>
  /** Id of this node. */
  self: string
  isLiving: (node: string) => boolean
  /** Calls back when nodes have joined or left. */
  onChange: (listener: () => void) => void
  /** Whether this node works off the queue of a subscription. */
  isOwn: (name: string) => boolean
  /** Informs one contact. Undefined: the hub informs no contacts. */
  send: TellContact | undefined
  log: Log
}) {
  const { subscriptions, self, isLiving, onChange, isOwn, send, log } = parts
  let isStopped = false

  return {
    tell,

    /** Disables a subscription, and informs its contact. */
    async disable(name: string): Promise<void> {
      await subscriptions.disable(name, send && self)
      // Look at `toldBy` instead of the result of `disable`. An earlier call that got no answer may have disabled the
      // subscription already.
      if (send && subscriptions.find(name)?.toldBy === self) tell(name).catch(notTold)
    },

    /** Informs contacts in place of lost nodes. A node gets a new id at each start: its old id counts as lost. */
    takeOver,

    /** Does the work of `takeOver` now, and whenever a node is lost. */
    start(): void {
      void takeOver()
      onChange(() => void takeOver())
    },

    stop(): void {
      isStopped = true
    },
  }

  function takeOver(): Promise<void> {
    return takeOverFromLost().catch(notTold)
  }

  async function takeOverFromLost(): Promise<void> {
    if (!send) return
    for (const { name, toldBy } of subscriptions.list()) {
      if (toldBy === undefined || isLiving(toldBy) || !isOwn(name)) continue
      if (await subscriptions.passTelling(name, toldBy, self)) await tell(name)
    }
  }

  async function tell(name: string): Promise<void> {
    const subscription = subscriptions.find(name)
    if (subscription) await send?.(subscription)
    // Without this commit, the contact would be informed again after a restart.
    await untilDone(() => subscriptions.passTelling(name, self), {
      failed: (err) => log.error({ err, subscription: name }, 'not stored yet that the contact was told'),
      isWanted: () => !isStopped,
    })
  }

  function notTold(err: unknown): void {
    log.error({ err }, 'contacts of disabled subscriptions not told')
  }
}
