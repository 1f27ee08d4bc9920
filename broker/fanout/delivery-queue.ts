import { setImmediate as nextTurn } from 'node:timers/promises'
import { sumPerTurn } from '../../listener/pacing.ts'

/** Maximum number of bytes that the node sends to each subscriber without a break. */
const maxAtOnce = 256 * 1024
/** If more than this number of calls wait, only breaks that protect buffers are made: each break delays messages. */
const maxWaiting = 8

/**
 * Carries out deliveries in the order of the calls. Breaks keep the buffers of fast readers from overflowing:
 * docs/decisions, "An event for many goes out in several turns".
 */
export function createDeliveryQueue(most = maxWaiting) {
  /** The last unfinished call of `deliver`. Undefined: all calls have ended. */
  let last: Promise<void> | undefined
  let waiting = 0
  const fitsInTurn = sumPerTurn(maxAtOnce)

  return {
    /** Calls `made` after the last delivery, in the same turn, and then resolves. Undefined: all that is done at once. */
    deliver(deliveries: readonly Delivery[], made?: () => void): Promise<void> | undefined {
      const work: Work = { deliveries, made, next: 0, rest: undefined }
      try {
        if (!last && proceed(work) === 'done') return undefined
      } catch (error) {
        // The driver of the store calls this during its write, which must go on.
        return Promise.reject(error)
      }
      const own = finish(work, last).finally(() => {
        waiting--
        if (last === own) last = undefined
      })
      last = own
      waiting++
      return own
    },

    /** Resolves when the deliveries that are under way now have ended; undefined: there are none. */
    ended: (): Promise<void> | undefined => last,
  }

  async function finish(work: Work, before: Promise<void> | undefined): Promise<void> {
    await (before ? Promise.allSettled([before]) : nextTurn())
    for (let step = proceed(work); step !== 'done'; step = proceed(work)) {
      if (step === 'full' || waiting <= most) await nextTurn()
    }
  }

  /** Makes the deliveries up to the next break. `full`: without this break, buffers may overflow. */
  function proceed(work: Work): 'break' | 'full' | 'done' {
    for (;;) {
      const delivery = work.deliveries[work.next]
      if (!delivery) break
      if (work.rest) {
        if (!work.rest.next().done) return 'break'
      } else {
        if (!fitsInTurn(delivery.bytes)) return 'full'
        work.rest = delivery.send()
        if (work.rest) return 'break'
      }
      delivery.sent?.()
      work.rest = undefined
      work.next++
    }
    work.made?.()
    return 'done'
  }
}

/** The delivery of one message to all its recipients. */
export interface Delivery {
  bytes: number
  /**
   * Sends the message. Undefined: it is sent wholly. Else each step of the iterator sends a part, and a break may come
   * before each step.
   */
  send: () => Iterator<void> | undefined
  /** Runs when the message is sent. */
  sent?: () => void
}

/** Deliveries that are made in order. `next`: index of the first unfinished delivery. `rest`: its remaining steps. */
interface Work {
  deliveries: readonly Delivery[]
  made: (() => void) | undefined
  next: number
  rest: Iterator<void> | undefined
}
