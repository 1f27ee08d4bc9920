import type { Principal } from '../../acl/principal.ts'
import { type Collected, createHalfReceived } from '../../listener/half-received.ts'
import { createPublishRate } from '../../listener/publish-rate.ts'

/**
 * Limits before and after log-in. `bytes`: for the packets of all connections together. `pieces`: how many pieces of
 * one packet may be tiny.
 */
const limitsBeforeLogIn = { bytes: 16 * 1024 * 1024, pieces: 128 }
const limitsAfterLogIn = { bytes: 64 * 1024 * 1024, pieces: 1024 }
/**
 * Maximum number of pieces below 64 bytes that a credential may send per second. The number is `perEvent` times the
 * publish rate, but at least `perSecond`.
 */
const tinyPieces = { perEvent: 8, perSecond: 1024 }

/** Bounds the memory that the unfinished and waiting packets of all connections take. */
export function createUnfinished(publishRate: number) {
  const beforeLogIn = createHalfReceived(limitsBeforeLogIn.bytes, limitsBeforeLogIn.pieces)
  const afterLogIn = createHalfReceived(limitsAfterLogIn.bytes, limitsAfterLogIn.pieces)
  const tinyRate = Math.max(tinyPieces.perSecond, tinyPieces.perEvent * publishRate)
  // A publish rate of 0 means no limit, also for tiny pieces.
  const pieceRate = createPublishRate(publishRate === 0 ? 0 : tinyRate)

  return {
    /** Begins to collect an unfinished packet of a client. Calls `end` if the packet must make room. */
    collect(
      { principal }: { principal: Principal | undefined },
      isBeforeLogIn: boolean,
      end: () => void,
    ): Collected {
      if (isBeforeLogIn) return beforeLogIn.collect(end)
      const username = principal?.username ?? ''
      return afterLogIn.collect(end, () => pieceRate.take(username, performance.now()) === 0)
    },
    countBytes: afterLogIn.countBytes,
  }
}
