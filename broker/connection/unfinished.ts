import type { Principal } from '../../acl/principal.ts'
import { createHalfReceived } from '../../listener/half-received.ts'
import { createPublishRate } from '../../listener/publish-rate.ts'
import type { ConnectionEvents } from './connection-events.ts'

/** Before log-in and afterwards: bytes of all packets that are unfinished or wait, and free pieces of each packet. */
const before = { bytes: 16 * 1024 * 1024, pieces: 128 }
const after = { bytes: 64 * 1024 * 1024, pieces: 1024 }
/** Tiny pieces that a credential may send in a second: `perEvent` times the publish rate, at least `perSecond`. */
const tinyPieces = { perEvent: 8, perSecond: 1024 }

/** The room for packets that are unfinished or wait, of all connections together. */
export function createUnfinished(publishRate: number) {
  const beforeLogIn = createHalfReceived(before.bytes, before.pieces)
  const afterwards = createHalfReceived(after.bytes, after.pieces)
  const tinyRate = Math.max(tinyPieces.perSecond, tinyPieces.perEvent * publishRate)
  // Without a publish rate there is no rate of pieces either.
  const pieceRate = createPublishRate(publishRate === 0 ? 0 : tinyRate)

  return {
    /** The events of a connection that are about room for packets. */
    eventsOf: (connection: {
      principal: Principal | undefined
    }): Pick<ConnectionEvents, 'collect' | 'hold'> => ({
      collect(isBeforeLogIn, end) {
        if (isBeforeLogIn) return beforeLogIn.collect(end)
        const username = connection.principal?.username ?? ''
        return afterwards.collect(end, () => pieceRate.take(username, performance.now()) === 0)
      },
      hold: afterwards.hold,
    }),
  }
}
