import { inTimeOr } from './deadline.ts'
import type { Store } from './store.ts'

/** A store that has not answered after this time is not waited for; milliseconds. */
const patienceMs = 1_200

/**
 * Waits until this node knows all earlier commits of the other nodes. For refusals: another node may have made what
 * this one does not know yet. False: there are no other nodes, or the store does not answer in time.
 */
export async function caughtUp(store: Store): Promise<boolean> {
  if (!store.isShared) return false
  const known = store.catchUp().then(
    () => true,
    () => false,
  )
  return inTimeOr(known, patienceMs, false)
}
