import type { Log } from '../../telemetry/log.ts'
import type { PushSubscription } from './subscription.ts'
import type { PushSubscriptions } from './subscriptions.ts'

/** Tells the contact of a subscription that it is disabled. Never rejects. */
export type TellContact = (subscription: PushSubscription) => Promise<void>

/**
 * Tells the contacts of disabled subscriptions, each contact once however many nodes there are. The node that tells is
 * stored with the subscription until it has done so. If it is gone before, another node takes over.
 */
export function createContacts(parts: {
  subscriptions: Pick<PushSubscriptions, 'find' | 'list' | 'disable' | 'passTelling'>
  /** This node. */
  self: string
  isLiving: (node: string) => boolean
  /** Calls back when nodes have come or gone. */
  onChange: (listener: () => void) => void
  /** Whether this node looks after the queue of a subscription. */
  isOwn: (name: string) => boolean
  /** Undefined: no contact is told. */
  send: TellContact | undefined
  log: Log
}) {
  const { subscriptions, self, isLiving, onChange, isOwn, send, log } = parts

  return {
    tell,

    /** Disables a subscription, and tells its contact. */
    async disable(name: string): Promise<void> {
      await subscriptions.disable(name, send && self)
      // Whatever `disable` returned: an earlier call whose commit got no answer may have disabled it.
      if (send && subscriptions.find(name)?.toldBy === self) tell(name).catch(notTold)
    },

    /** Tells contacts that a node left untold: one that is gone, or with `isStart` this one before its start. */
    takeOver,

    /** Takes over from this node before its start, and from now on from each node that goes. */
    start(): void {
      void takeOver(true)
      onChange(() => void takeOver(false))
    },
  }

  function takeOver(isStart: boolean): Promise<void> {
    return takeOverFrom(isStart).catch(notTold)
  }

  async function takeOverFrom(isStart: boolean): Promise<void> {
    if (!send) return
    for (const { name, toldBy } of subscriptions.list()) {
      if (toldBy === undefined || !isOwn(name)) continue
      if (isLiving(toldBy) && !(isStart && toldBy === self)) continue
      if (await subscriptions.passTelling(name, toldBy, self)) await tell(name)
    }
  }

  async function tell(name: string): Promise<void> {
    const subscription = subscriptions.find(name)
    if (subscription) await send?.(subscription)
    await subscriptions.passTelling(name, self)
  }

  function notTold(err: unknown): void {
    log.error({ err }, 'contacts of disabled subscriptions not told')
  }
}
