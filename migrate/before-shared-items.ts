import type { Store } from '../store/store.ts'
import { formatChange, formatOf, presentFormat } from '../store/stored-value.ts'
import { removeCleanSessions } from './clean-sessions.ts'

/*
 * 3.0.0-beta.2 and 3.0.0-beta.3 stored an item of its own for each webhook and event (format 2). Such items stay: one may
 * have its own record also today. This file ends with 4.0.0.
 */

/**
 * Takes over a store of format 2, which those releases refuse from now on. Rejects while `others` use it: they would not
 * deliver what several webhooks share, and remove its messages from the journal.
 */
export async function takeOverOwnItems(
  store: Store,
  others: () => Promise<readonly string[]>,
): Promise<void> {
  const names = await others()
  // Another node of this release may have taken the store over at the same time. It joins the others after that.
  if (names.length > 0 && (await formatOf(store)) !== presentFormat) {
    throw new Error(
      `nodes of a former release use the store (${names.join(', ')}): stop all of them, then start this one again. Of one that has crashed, start the former release once, and stop it`,
    )
  }
  await removeCleanSessions(store)
  await store.commit([formatChange()])
}
