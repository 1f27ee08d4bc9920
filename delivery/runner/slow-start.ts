import type { OwnedEndpoint } from '../target.ts'

/**
 * An endpoint was down if at least this many attempts failed in a row. Also, at least `downMs` milliseconds must lie
 * between the first failure and the recovery.
 */
const downFailures = 3
const downMs = 1_000
/** Deliveries per second at the moment of recovery; the rate doubles every second. */
const firstRate = 5
const doublingMs = 1_000
/** From this rate on (deliveries per second), no delivery waits any more. */
const fullRate = 1_000
const maxEndpoints = 10_000

interface Endpoint {
  failures: number
  /** When the first failure in a row happened. Milliseconds since the epoch, like `recoveredAt` and `next`. */
  failingSince: number
  recoveredAt?: number
  /** When the next delivery may start. */
  next: number
}

/** Protects an endpoint that recovers: deliveries start at a low rate, which grows (design.md §10). */
export function createSlowStart(clock: () => number) {
  const endpoints = new Map<string, Endpoint>()
  const rateAfter = (ms: number) => firstRate * 2 ** (ms / doublingMs)

  return {
    /**
     * Milliseconds until a delivery can start. While an endpoint recovers, each call reserves a start time. The next
     * call then gets a later one.
     */
    waitFor(target: OwnedEndpoint): number {
      const endpoint = endpoints.get(keyOf(target))
      if (endpoint?.recoveredAt === undefined) return 0
      const now = clock()
      const { recoveredAt } = endpoint
      const wasSetBack = now < recoveredAt
      if (wasSetBack || rateAfter(now - recoveredAt) >= fullRate) {
        endpoints.delete(keyOf(target))
        return 0
      }
      const start = Math.max(now, endpoint.next)
      endpoint.next = start + 1_000 / Math.min(fullRate, rateAfter(start - recoveredAt))
      return start - now
    },

    failed(target: OwnedEndpoint): void {
      const now = clock()
      const endpoint = endpoints.get(keyOf(target))
      if (endpoint && endpoint.recoveredAt === undefined) endpoint.failures++
      else endpoints.set(keyOf(target), { failures: 1, failingSince: now, next: 0 })
      for (const [oldest] of endpoints) {
        if (endpoints.size <= maxEndpoints) break
        endpoints.delete(oldest)
      }
    },

    succeeded(target: OwnedEndpoint): void {
      const endpoint = endpoints.get(keyOf(target))
      if (!endpoint || endpoint.recoveredAt !== undefined) return
      const now = clock()
      const wasDown = endpoint.failures >= downFailures && now - endpoint.failingSince >= downMs
      if (!wasDown) endpoints.delete(keyOf(target))
      else endpoints.set(keyOf(target), { ...endpoint, recoveredAt: now, next: now + 1_000 / firstRate })
    },
  }
}

function keyOf({ owner, endpoint }: OwnedEndpoint): string {
  return `${owner} ${endpoint}`
}
