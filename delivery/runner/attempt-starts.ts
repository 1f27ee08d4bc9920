import { setTimeout as sleep } from 'node:timers/promises'
import { createPacing } from '../../listener/pacing.ts'
import { once } from '../../store/once.ts'
import type { Slots } from '../queue/limits.ts'
import type { Outcome, Target } from '../target.ts'
import { createConcurrency } from './concurrency.ts'
import { createSlowStart } from './slow-start.ts'

/**
 * Maximum number of attempts that start in one turn of the event loop: hundreds of TLS handshakes at once would block
 * the node.
 */
const startsPerTurn = 4

/** Decides when an attempt may start: a slot must be free, and an endpoint that recovers must not be flooded. */
export function createAttemptStarts(slots: Slots, clock: () => number, stopping: AbortSignal) {
  const healthy = createConcurrency(slots.healthy)
  const failing = createConcurrency(slots.failing)
  const slowStart = createSlowStart(clock)
  const starts = createPacing(startsPerTurn)

  return {
    /**
     * Resolves when an attempt may start, with a function that gives the slot back. Further calls of the function do
     * nothing.
     */
    async enter(target: Target, isFailing: boolean): Promise<() => void> {
      // The attempt pauses before it takes a slot, so that others can use the slot meanwhile.
      const pause = slowStart.waitFor(target)
      if (pause > 0) await sleep(pause, undefined, { signal: stopping })
      const leave = once(await (isFailing ? failing : healthy).enter(target.endpoint, target.owner))
      await new Promise<void>((resolve) => starts.enter(resolve, { asker: target.owner }) && resolve())
      if (stopping.aborted) leave()
      stopping.throwIfAborted()
      return leave
    },

    /** Notes the outcome of an attempt. Later attempts to the endpoint start slowly if it has just recovered. */
    ended(target: Target, { result }: Outcome): void {
      if (result === 'acknowledged') slowStart.succeeded(target)
      else slowStart.failed(target)
    },
  }
}
