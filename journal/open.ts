import type { Store } from '../store/store.ts'
import { createHistory } from './history/history.ts'
import { openJournal } from './journal.ts'
import type { KeepingLimits } from './keeping.ts'
import { openRetained } from './retained.ts'
import { openReturnable } from './returnable.ts'
import { openTrimming } from './trimming.ts'

/** Opens the journal with its views: retained values, messages for returning sessions, and the history of events. */
export async function openJournalAndViews(parts: {
  store: Store
  /** Whether this node trims the journal. Exactly one of the nodes does. */
  isLeader: () => boolean
  limits: KeepingLimits
  clock: () => number
}) {
  const journal = await openJournal(parts.store)
  const returnable = await openReturnable(parts.store)
  const retained = await openRetained({ ...parts, journal, returnable })
  const trimming = await openTrimming({ ...parts, journal, retained, returnable })
  const history = createHistory({ store: parts.store, journal })
  return { journal, returnable, retained, trimming, history }
}
