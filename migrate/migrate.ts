import type { Dumpable, Store } from '../store/store.ts'
import { formatChange, formatOf, presentFormat } from '../store/stored-value.ts'
import { refuseBeforeJournal } from './before-journal.ts'
import { takeOverOwnItems } from './before-shared-items.ts'
import { removeCopiedFeeds } from './copied-feeds.ts'

/*
 * Conversions of what former releases have stored, which run once for each store. Each has a file of its own, which
 * says with which release it ends.
 */

/**
 * Brings a store into the form of this release, before other code reads the store. Resolves with whether the store was
 * new. Rejects if this release cannot read the store, and has changed nothing then: a newer release has written it, or
 * one from before the journal, or nodes of a former release use it. `others`: the names of the other nodes that use it.
 */
export async function migrate(
  store: Store & Dumpable,
  others: () => Promise<readonly string[]>,
): Promise<boolean> {
  const format = await formatOf(store)
  if (format !== undefined) {
    if (format !== presentFormat) await takeOverOwnItems(store, others)
    await removeCopiedFeeds(store)
    return false
  }
  await refuseBeforeJournal(store)
  await store.commit([formatChange()])
  return true
}
