import { setTimeout as sleep } from 'node:timers/promises'
import { createPacing } from '../../listener/pacing.ts'
import { once } from '../../store/once.ts'
import type { Slots } from '../queue/limits.ts'
import type { Outcome, Target } from '../target.ts'
import { createConcurrency } from './concurrency.ts'
import { createSlowStart } from './slow-start.ts'

/** Most attempts that begin in one turn of the event loop: handshakes of hundreds at once would hold up everything. */
const startsPerTurn = 4

/** Decides when an attempt may start: its endpoint must be able to bear it, and a slot must be free. */
export function createAttemptStarts(slots: Slots, clock: () => number, stopping: AbortSignal) {
  const healthy = createConcurrency(slots.healthy)
  const failing = createConcurrency(slots.failing)
  const slowStart = createSlowStart(clock)
  const starts = createPacing(startsPerTurn)

  return {
    /** Resolves when an attempt may start, with a function that gives its slot back. Further calls do nothing. */
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

    /** Notes the outcome of an attempt, which shows how much the endpoint can bear. */
    ended(target: Target, { result }: Outcome): void {
      if (result === 'acknowledged') slowStart.succeeded(target)
      else slowStart.failed(target)
    },
  }
}
