import { createCollection } from '../../store/collection.ts'
import { storeKeys } from '../../store/keys.ts'
import { type NumberedNode, ownKey } from '../../store/nodes/nodes.ts'
import type { Store } from '../../store/store.ts'
import { createLastRequests, type LastAsker } from './last-requests.ts'
import { type ApiTrack, isTrack } from './track.ts'

export type Traffic = Awaited<ReturnType<typeof createTraffic>>

/** Requests of one route on one day (UTC). */
export interface RouteTraffic {
  track: ApiTrack
  /** `GET /topics/{topicName}` */
  route: string
  day: string
  requests: number
}

const dayMs = 24 * 3600 * 1000
/** Milliseconds between two writes of changed counters. A crash loses the requests in between. */
const flushMs = 10_000
const keptDays = 400

/**
 * Counts requests per route and day, across restarts and nodes. The sums decide whether a track can retire (design.md
 * §9). A node writes the counters of its own slot and no others (`ownKey`).
 */
export async function createTraffic(parts: {
  store: Store
  clock: () => number
  onStoreFailure: (error: unknown) => void
  /** Absent: there is only one node. */
  nodes?: NumberedNode
}) {
  const { store, clock, onStoreFailure, nodes } = parts
  const stored = await createCollection<RouteTraffic>(store, storeKeys.traffic)
  const lastRequests = await createLastRequests(parts)
  for (const [key, { track, day }] of [...stored.entries()]) {
    if (!isTrack(track) || day < dayOf(clock() - keptDays * dayMs)) await stored.delete(key)
  }
  /** The counters of this node, including requests that are not stored yet. */
  const own = new Map<string, RouteTraffic>()
  stored.onChanged((key, _before, after) => {
    // The node that had this number before may have been wrongly taken for dead. Then that node still writes its
    // counters under the same keys. The larger of the two counts is right.
    const counter = own.get(key)
    if (counter && after) counter.requests = Math.max(counter.requests, after.requests)
  })
  const changed = new Set<string>()
  let flushing: Promise<void> = Promise.resolve()
  const timer = setInterval(() => void flush(), flushMs).unref()

  return {
    /** `asker`: the user, if it is known. */
    count(track: ApiTrack, route: string, asker?: LastAsker): void {
      if (asker) lastRequests.note(track, route, asker)
      const counter = { track, route, day: dayOf(clock()) }
      const key = ownKey(keyOf(counter), nodes)
      const { requests } = own.get(key) ?? stored.get(key) ?? { requests: 0 }
      own.set(key, { ...counter, requests: requests + 1 })
      changed.add(key)
      // Written at once: a crash must not turn a day with traffic into a quiet one.
      if (requests === 0) void flush()
    },

    /** The requests to a track, per day and route, of the last `days` days and today. The oldest day is first. */
    of(track: ApiTrack, days: number): RouteTraffic[] {
      const from = dayOf(clock() - days * dayMs)
      const sums = new Map<string, RouteTraffic>()
      for (const counter of new Map([...stored.entries(), ...own]).values()) {
        if (counter.track !== track || counter.day < from) continue
        const { requests = 0 } = sums.get(keyOf(counter)) ?? {}
        sums.set(keyOf(counter), { ...counter, requests: requests + counter.requests })
      }
      return [...sums.values()].sort((a, b) => (`${a.day} ${a.route}` < `${b.day} ${b.route}` ? -1 : 1))
    },

    /** The last request of each user to a track, the newest request first. */
    left: lastRequests.of,

    /** Writes the changed counters. */
    async close(): Promise<void> {
      clearInterval(timer)
      await lastRequests.close()
      await flush()
    },
  }

  function flush(): Promise<void> {
    flushing = flushing.then(async () => {
      for (const key of [...changed]) {
        const counter = own.get(key)
        changed.delete(key)
        if (!counter) continue
        await stored.put(key, { ...counter }).catch((error: unknown) => {
          changed.add(key)
          onStoreFailure(error)
        })
      }
    })
    return flushing
  }
}

function keyOf({ day, track, route }: Omit<RouteTraffic, 'requests'>): string {
  return `${day} ${track} ${route}`
}

function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10)
}
