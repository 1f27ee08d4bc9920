import { RateLimiterMemory } from 'rate-limiter-flexible'
import type { Store } from '../store/store.ts'
import { createTally } from '../store/tally.ts'

/**
 * Failed log-ins per address, on all nodes that share the store: after too many in a minute, a minute without
 * any (design.md §3). 0: no limit.
 */
export function createLoginLimit(failures: number, store: Store) {
  const limiter = new RateLimiterMemory({ points: Math.max(failures, 1), duration: 60, blockDuration: 60 })
  const tellOthers = createTally(store, 'mqtt-login', (address, count) => void consume(address, count))
  return {
    async isBlocked(address: string): Promise<boolean> {
      if (failures === 0) return false
      const state = await limiter.get(address)
      return state !== null && state.consumedPoints > failures
    },
    async failed(address: string): Promise<void> {
      if (failures === 0) return
      tellOthers(address)
      await consume(address, 1)
    },
  }

  async function consume(address: string, count: number): Promise<void> {
    // It rejects to say that the limit is reached.
    await limiter.consume(address, count).catch(() => undefined)
  }
}

/** Buckets that are full again say nothing; they are dropped when so many have piled up. */
const bucketsKept = 10_000

/**
 * Events per second and credential, on all nodes that share the store, as a token bucket of twice the rate
 * (design.md §3). 0: no limit. `take` answers with the milliseconds to stop reading; it never refuses, because
 * nothing may be lost. `now` is `performance.now()`.
 */
export function createPublishRate(rate: number, store?: Store) {
  const buckets = new Map<string, { tokens: number; at: number }>()
  const size = rate * 2
  const tellOthers = createTally(store, 'mqtt-publish', (username, count) => {
    spend(username, count, performance.now())
  })

  return {
    take(username: string, now: number): number {
      if (rate === 0) return 0
      tellOthers(username)
      const tokens = spend(username, 1, now)
      return tokens >= 0 ? 0 : (-tokens / rate) * 1000
    },
  }

  /** The tokens that are left then. */
  function spend(username: string, count: number, now: number): number {
    const bucket = buckets.get(username)
    const refilled = bucket ? bucket.tokens + ((now - bucket.at) / 1000) * rate : size
    const tokens = Math.min(refilled, size) - count
    if (!bucket && buckets.size >= bucketsKept) dropFull(now)
    buckets.set(username, { tokens, at: now })
    return tokens
  }

  function dropFull(now: number): void {
    for (const [username, { tokens, at }] of buckets) {
      if (tokens + ((now - at) / 1000) * rate >= size) buckets.delete(username)
    }
  }
}
