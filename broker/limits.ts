import { RateLimiterMemory } from 'rate-limiter-flexible'

/** Failed log-ins per address: after too many in a minute, a minute without any (design.md §3). 0: no limit. */
export function createLoginLimit(failures: number) {
  const limiter = new RateLimiterMemory({ points: Math.max(failures, 1), duration: 60, blockDuration: 60 })
  return {
    async isBlocked(address: string): Promise<boolean> {
      if (failures === 0) return false
      const state = await limiter.get(address)
      return state !== null && state.consumedPoints > failures
    },
    async failed(address: string): Promise<void> {
      // It rejects to say that the limit is reached.
      if (failures > 0) await limiter.consume(address).catch(() => undefined)
    },
  }
}

/** Buckets that are full again say nothing; they are dropped when so many have piled up. */
const bucketsKept = 10_000

/**
 * Events per second and credential as a token bucket of twice the rate (design.md §3). 0: no limit.
 * `take` answers with the milliseconds to stop reading; it never refuses, because nothing may be lost.
 */
export function createPublishRate(rate: number) {
  const buckets = new Map<string, { tokens: number; at: number }>()
  const size = rate * 2

  return {
    take(username: string, now: number): number {
      if (rate === 0) return 0
      const bucket = buckets.get(username)
      const refilled = bucket ? bucket.tokens + ((now - bucket.at) / 1000) * rate : size
      const tokens = Math.min(refilled, size) - 1
      if (!bucket && buckets.size >= bucketsKept) dropFull(now)
      buckets.set(username, { tokens, at: now })
      return tokens >= 0 ? 0 : (-tokens / rate) * 1000
    },
  }

  function dropFull(now: number): void {
    for (const [username, { tokens, at }] of buckets) {
      if (tokens + ((now - at) / 1000) * rate >= size) buckets.delete(username)
    }
  }
}
