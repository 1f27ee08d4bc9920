import { setImmediate as nextTurn } from 'node:timers/promises'

/** Bytes that are delivered to everybody without a break. */
const maxAtOnce = 256 * 1024
/** When more deliveries than these wait, what publishes them has to wait as well: no breaks but those for the buffers. */
const maxWaiting = 8

/** One message for all who get it. */
export interface Portion {
  bytes: number
  /** Sends it; a break is good at each value. */
  send: () => Iterable<void>
}

/**
 * Delivers at once, as a rule. What would overflow the buffers of subscribers that read as fast as they can, or goes
 * to very many, takes several turns: the network gets its own in between, and what is accepted meanwhile does not
 * overtake it.
 */
export function createPortions() {
  /** The last of the deliveries that take their time, while there are any: what comes behind waits for it. */
  let last: Promise<void> | undefined
  let waiting = 0

  return {
    /** Resolves when all have been delivered, in this order and behind those of earlier calls. */
    async deliver(portions: readonly Portion[]): Promise<void> {
      const steps = stepsOf(portions)
      if (!last && steps.next().done) return
      const own = finish(steps, last)
      last = own
      waiting++
      try {
        await own
      } finally {
        waiting--
        if (last === own) last = undefined
      }
    },

    /** Resolves when what is being delivered has been; undefined: nothing is. */
    ended: (): Promise<void> | undefined => last,
  }

  async function finish(steps: Iterator<boolean>, before: Promise<void> | undefined): Promise<void> {
    await (before ? Promise.allSettled([before]) : nextTurn())
    for (let step = steps.next(); !step.done; step = steps.next()) {
      const isNeeded = step.value
      if (isNeeded || waiting <= maxWaiting) await nextTurn()
    }
  }
}

/** Yields at each break, whether it is needed. */
function* stepsOf(portions: readonly Portion[]): Generator<boolean> {
  let sent = 0
  for (const { bytes, send } of portions) {
    if (sent > 0 && sent + bytes > maxAtOnce) {
      yield true
      sent = 0
    }
    sent += bytes
    for (const _ of send()) yield false
  }
}
