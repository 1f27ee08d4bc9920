import { setTimeout as sleep } from 'node:timers/promises'
import { createPacing } from '../../listener/pacing.ts'
import { once } from '../../store/once.ts'
import type { Slots } from '../queue/limits.ts'
import type { AttemptOutcome, Target } from '../target.ts'
import { createConcurrency } from './concurrency.ts'
import { createSlowStart } from './slow-start.ts'

/** Hundreds of TLS handshakes in one turn of the event loop would block the node. */
const startsPerTurn = 4

/** Makes attempts wait for a free slot, and protects a recovering endpoint from a flood. */
export function createAttemptStarts(slots: Slots, clock: () => number, stopping: AbortSignal) {
  const healthy = createConcurrency(slots.healthy)
  const failing = createConcurrency(slots.failing)
  const slowStart = createSlowStart(clock)
  const starts = createPacing(startsPerTurn)

  return {
    /** Resolves when an attempt can start. The returned function gives the slot back; a second call does nothing. */
    async enter(target: Target, isFailing: boolean): Promise<() => void> {
      // Pause before taking a slot: others can use the slot meanwhile.
      const pause = slowStart.waitFor(target)
      if (pause > 0) await sleep(pause, undefined, { signal: stopping })
      const leave = once(await (isFailing ? failing : healthy).enter(target.endpoint, target.owner))
      await new Promise<void>((resolve) => starts.enter(resolve, { asker: target.owner }) && resolve())
      if (stopping.aborted) leave()
      stopping.throwIfAborted()
      return leave
    },

    /** Notes an outcome. An endpoint that has just recovered gets its next attempts slowly. */
    ended(target: Target, { result }: AttemptOutcome): void {
      if (result === 'acknowledged') slowStart.succeeded(target)
      else slowStart.failed(target)
    },
  }
}
