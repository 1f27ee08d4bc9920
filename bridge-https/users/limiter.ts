import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { createAddedCounts } from '../../store/nodes/added-counts.ts'
import type { Store } from '../../store/store.ts'

export type Limiter = ReturnType<typeof createLimiter>

/** Allows `points` for each key within `seconds`, over all nodes that share the store. */
export function createLimiter(
  store: Store | undefined,
  name: string,
  limit: { points: number; seconds: number },
) {
  const limiter = new RateLimiterMemory({ points: limit.points, duration: limit.seconds })
  const tellOthers = createAddedCounts(store, name, (key, count) => void limiter.penalty(key, count))

  return {
    /** Takes a point. If none is left, resolves with the seconds to wait, else with undefined. */
    async take(key: string): Promise<number | undefined> {
      try {
        await limiter.consume(key)
        return undefined
      } catch (state) {
        if (!(state instanceof RateLimiterRes)) throw state
        return Math.max(1, Math.ceil(state.msBeforeNext / 1000))
      }
    },

    /** Gives back a point that should not count. */
    async giveBack(key: string): Promise<void> {
      await limiter.reward(key)
    },

    /** Makes a taken point count on the other nodes as well. */
    tellOthers,
  }
}
