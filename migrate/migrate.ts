import type { Dumpable, Store } from '../store/store.ts'
import { formatChange, isPresentFormat } from '../store/stored-value.ts'
import { refuseBeforeJournal } from './before-journal.ts'
import { removeCopiedFeeds } from './copied-feeds.ts'

/*
 * Conversions of what former releases have stored, which run once for each store. Each has a file of its own, which
 * says with which release it ends.
 */

/**
 * Brings a store into the form of this release, before other code reads the store. Resolves with whether the store was
 * new. Rejects if this release cannot read the store, and has changed nothing then: a newer release has written it, or
 * one from before the journal.
 */
export async function migrate(store: Store & Dumpable): Promise<boolean> {
  if (await isPresentFormat(store)) {
    await removeCopiedFeeds(store)
    return false
  }
  await refuseBeforeJournal(store)
  await store.commit([formatChange()])
  return true
}
