/** How many connected clients subscribe to what. */
export interface SubscriberCounts {
  /** Clients with a filter for all livestreams, such as `radio/#`. They count nowhere else. */
  ofAll: number
  /** The other clients, by livestream id. */
  byLivestream: Record<string, number>
}

/** Counts clients by the livestreams that their filters name. `clients`: the granted filters of each client. */
export function countSubscribers(clients: Iterable<Iterable<string>>): SubscriberCounts {
  const byLivestream: Record<string, number> = Object.create(null)
  let ofAll = 0
  for (const filters of clients) {
    const named = new Set<string>()
    for (const filter of filters) {
      const [tree, livestream] = filter.split('/', 2)
      if (tree === 'radio' && livestream !== undefined) named.add(livestream)
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
