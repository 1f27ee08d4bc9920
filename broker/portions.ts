/** Bytes that are delivered to everybody without a break. */
const maxAtOnce = 256 * 1024

/** One message for all who get it. */
export interface Portion {
  bytes: number
  /** Sends it, with a break at each value. */
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

  return {
    /** Resolves when all have been delivered, in this order and behind those of earlier calls. */
    async deliver(portions: readonly Portion[]): Promise<void> {
      const steps = stepsOf(portions)
      if (!last && steps.next().done) return
      const own = finish(steps, last)
      last = own
      try {
        await own
      } finally {
        if (last === own) last = undefined
      }
    },
  }
}

async function finish(steps: Iterator<void>, before: Promise<void> | undefined): Promise<void> {
  if (before) {
    await Promise.allSettled([before])
    if (steps.next().done) return
  }
  do await nextTurn()
  while (!steps.next().done)
}

function* stepsOf(portions: readonly Portion[]): Generator<void> {
  let sent = 0
  for (const { bytes, send } of portions) {
    if (sent > 0 && sent + bytes > maxAtOnce) {
      yield
      sent = 0
    }
    sent += bytes
    yield* send()
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
