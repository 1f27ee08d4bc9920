import { RateLimiterMemory } from 'rate-limiter-flexible'
import { createAddedCounts } from '../../store/nodes/added-counts.ts'
import type { Store } from '../../store/store.ts'

export type LoginLimit = ReturnType<typeof createLoginLimit>

/**
 * Counts failed log-ins per IP address, on all nodes together. After `failures` in a minute, the address is blocked for
 * a minute (design.md §3). `failures` 0: no limit.
 */
export function createLoginLimit(failures: number, store: Store) {
  // The limiter blocks an address that takes more than `points`. So `points` is one less than `failures`.
  const limiter = new RateLimiterMemory({
    points: Math.max(failures - 1, 0),
    duration: 60,
    blockDuration: 60,
  })
  const tellOthers = createAddedCounts(store, 'mqtt-login', (address, count) => void consume(address, count))
  return {
    async isBlocked(address: string): Promise<boolean> {
      if (failures === 0) return false
      const state = await limiter.get(address)
      return state !== null && state.consumedPoints >= failures
    },
    async failed(address: string): Promise<void> {
      if (failures === 0) return
      tellOthers(address)
      await consume(address, 1)
    },
  }

  async function consume(address: string, count: number): Promise<void> {
    // The limiter rejects above the limit. Here this is no error.
    await limiter.consume(address, count).catch(() => undefined)
  }
}
