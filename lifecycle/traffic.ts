import { createCollection } from '../store/collection.ts'
import type { Store } from '../store/store.ts'
import { isTrack, type Track } from './track.ts'

export type Traffic = Awaited<ReturnType<typeof createTraffic>>

/** Requests of one route on one day (UTC). */
export interface RouteTraffic {
  track: Track
  /** `GET /topics/{topicName}` */
  route: string
  day: string
  requests: number
}

const dayMs = 24 * 3600 * 1000
/** Between two writes of counters that have grown. A crash loses no more than that, and never the first of a day. */
const flushMs = 10_000
const keptDays = 400

/** Requests per route and day, kept over restarts: what retiring a track is measured by (design.md §9). */
export async function createTraffic(parts: {
  store: Store
  clock: () => number
  onStoreFailure: (error: unknown) => void
}) {
  const { store, clock, onStoreFailure } = parts
  const stored = await createCollection<RouteTraffic>(store, 'traffic')
  const counters = new Map<string, RouteTraffic>()
  for (const [key, counter] of [...stored.entries()]) {
    if (isTrack(counter.track) && counter.day >= dayOf(clock() - keptDays * dayMs)) counters.set(key, counter)
    else await stored.delete(key)
  }
  const changed = new Set<string>()
  let flushing: Promise<void> = Promise.resolve()
  const timer = setInterval(() => void flush(), flushMs).unref()

  return {
    count(track: Track, route: string): void {
      const day = dayOf(clock())
      const key = `${day} ${track} ${route}`
      const counter = counters.get(key)
      if (counter) counter.requests++
      else counters.set(key, { track, route, day, requests: 1 })
      changed.add(key)
      // Whether there was any traffic at all is what counts: a crash must not turn one into none.
      if (!counter) void flush()
    },

    /** Of a track, on the last `days` days and today, oldest first. */
    of(track: Track, days: number): RouteTraffic[] {
      const from = dayOf(clock() - days * dayMs)
      return [...counters.values()]
        .filter((counter) => counter.track === track && counter.day >= from)
        .map((counter) => ({ ...counter }))
        .sort((a, b) => (`${a.day} ${a.route}` < `${b.day} ${b.route}` ? -1 : 1))
    },

    /** Writes what has not been written. */
    async close(): Promise<void> {
      clearInterval(timer)
      await flush()
    },
  }

  function flush(): Promise<void> {
    flushing = flushing.then(async () => {
      for (const key of [...changed]) {
        const counter = counters.get(key)
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

function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10)
}
