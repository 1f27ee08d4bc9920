import { setImmediate as nextTurn } from 'node:timers/promises'

/** How many connected clients subscribe to what. */
export interface SubscriberCounts {
  /** Clients with a filter for all livestreams, such as `radio/#`. They count nowhere else. */
  ofAll: number
  /** The other clients, by livestream id. A livestream that is absent has none. */
  byLivestream: Record<string, number>
}

/** Number of filters that are looked at in one turn of the event loop: about a millisecond of work. */
const perTurn = 500

/**
 * Counts clients by those of these livestreams that their filters name. `clients`: the granted filters of each client. In
 * several turns of the event loop, so that no event waits for thousands of clients.
 */
export async function countSubscribers(
  clients: Iterable<Iterable<string>>,
  livestreams: ReadonlySet<string>,
): Promise<SubscriberCounts> {
  const byLivestream: Record<string, number> = Object.create(null)
  let ofAll = 0
  let looked = 0
  for (const filters of clients) {
    const named = new Set<string>()
    for (const filter of filters) {
      if (++looked % perTurn === 0) await nextTurn()
      const [tree, livestream] = filter.split('/', 2)
      if (tree !== 'radio' || livestream === undefined) continue
      if (livestream === '#' || livestream === '+' || livestreams.has(livestream)) named.add(livestream)
    }
    if (named.has('#') || named.has('+')) ofAll++
    else for (const livestream of named) byLivestream[livestream] = (byLivestream[livestream] ?? 0) + 1
  }
  return { ofAll, byLivestream }
}

export function addCounts(all: readonly SubscriberCounts[]): SubscriberCounts {
  const byLivestream: Record<string, number> = Object.create(null)
  for (const counts of all) {
    for (const [livestream, count] of Object.entries(counts.byLivestream)) {
      byLivestream[livestream] = (byLivestream[livestream] ?? 0) + count
    }
  }
  return { ofAll: all.reduce((sum, { ofAll }) => sum + ofAll, 0), byLivestream }
}
