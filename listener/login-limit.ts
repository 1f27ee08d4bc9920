import { RateLimiterMemory } from 'rate-limiter-flexible'
import { createAddedCounts } from '../store/nodes/added-counts.ts'
import type { Store } from '../store/store.ts'

export type LoginLimit = ReturnType<typeof createLoginLimit>

/**
 * Counts failed log-ins with credentials per IP address, over MQTT and of readers, on all nodes together. After
 * `failures` in a minute, the address is blocked for a minute (design.md §3). `failures` 0: no limit.
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
    /** The seconds that an address has to wait. Undefined: it is not blocked. */
    async secondsBlocked(address: string): Promise<number | undefined> {
      if (failures === 0) return undefined
      const state = await limiter.get(address)
      if (state === null || state.consumedPoints < failures) return undefined
      return Math.max(1, Math.ceil(state.msBeforeNext / 1000))
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
