import { untilDone } from '../../store/until-done.ts'
import type { Log } from '../../telemetry/log.ts'
import type { PushSubscription } from './subscription.ts'
import type { PushSubscriptions } from './subscriptions.ts'

/** Informs a subscription's contact that the hub has disabled the subscription. Never rejects. */
export type TellContact = (subscription: PushSubscription) => Promise<void>

/**
 * When the hub has disabled a subscription, informs its contact: once, however many nodes there are. The field `toldBy`
 * of a subscription names the node that has to inform the contact, until the contact is informed. If that node is lost
 * first, another node takes over.
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
      // Ignore the result of `disable`: an earlier call whose commit got no answer may have disabled the subscription.
      if (send && subscriptions.find(name)?.toldBy === self) tell(name).catch(notTold)
    },

    /**
     * Looks for subscriptions whose `toldBy` names a lost node, and informs their contacts in place of that node. A
     * node gets a new id at each start, so its old id counts as lost.
     */
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
    // Without this commit, the next start of the node would inform the contact once more.
    await untilDone(() => subscriptions.passTelling(name, self), {
      failed: (err) => log.error({ err, subscription: name }, 'not stored yet that the contact was told'),
      isWanted: () => !isStopped,
    })
  }

  function notTold(err: unknown): void {
    log.error({ err }, 'contacts of disabled subscriptions not told')
  }
}
