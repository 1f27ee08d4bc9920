import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import type { Store } from '../../store/store.ts'
import { createTally } from '../../store/tally.ts'

export type Limiter = ReturnType<typeof createLimiter>

/** So many points per key and time, on all nodes that share the store. */
export function createLimiter(
  store: Store | undefined,
  name: string,
  limit: { points: number; seconds: number },
) {
  const limiter = new RateLimiterMemory({ points: limit.points, duration: limit.seconds })
  const tellOthers = createTally(store, name, (key, count) => void limiter.penalty(key, count))

  return {
    /** Undefined when there was a point left, which is taken; else the seconds until there is one. */
    async take(key: string): Promise<number | undefined> {
      try {
        await limiter.consume(key)
        return undefined
      } catch (state) {
        if (!(state instanceof RateLimiterRes)) throw state
        return Math.max(1, Math.ceil(state.msBeforeNext / 1000))
      }
    },

    /** Takes more points, whether they are left or not. */
    async charge(key: string, points: number): Promise<void> {
      await limiter.penalty(key, points)
    },

    /** The point was not for this. */
    async giveBack(key: string): Promise<void> {
      await limiter.reward(key)
    },

    /** A point that was taken stays taken, on the other nodes as well. */
    tellOthers,
  }
}

/** How many events a user may send over HTTPS in a second, twice the rate in a burst. 0: no limit. */
export function createEventRate(rate: number, store: Store) {
  const limit = { points: Math.max(rate * 2, 1), seconds: 2 }
  const limiter = createLimiter(store, 'https-publish', limit)
  return {
    /** Seconds until the next event of the user may come; 0: now, and it counts. */
    async waitFor(userId: string): Promise<number> {
      if (rate === 0) return 0
      const wait = await limiter.take(userId)
      if (wait === undefined) limiter.tellOthers(userId)
      return wait ?? 0
    },

    /** Counts what an event cost beyond one. */
    charge(userId: string, cost: number): void {
      if (rate === 0 || cost <= 0) return
      // Whole points: the limiter of all nodes counts no others.
      const points = Math.ceil(cost)
      void limiter.charge(userId, points)
      limiter.tellOthers(userId, points)
    },
  }
}
