import { setTimeout as sleep } from 'node:timers/promises'
import { createPacing } from '../../listener/pacing.ts'
import { once } from '../../store/once.ts'
import type { Places } from '../queue/limits.ts'
import type { Outcome, Target } from '../target.ts'
import { createConcurrency } from './concurrency.ts'
import { createSlowStart } from './slow-start.ts'

/** Attempts that begin in one turn of the event loop: handshakes of hundreds at once would hold up everything. */
const startsPerTurn = 4

/** Decides when an attempt may start: when its endpoint can bear it, and when it has one of the places. */
export function createAttemptStarts(places: Places, clock: () => number, stopping: AbortSignal) {
  const healthy = createConcurrency(places.healthy)
  const failing = createConcurrency(places.failing)
  const slowStart = createSlowStart(clock)
  const starts = createPacing(startsPerTurn)

  return {
    /** Resolves when an attempt may start. The function gives its place back, once however often it is called. */
    async enter(target: Target, isFailing: boolean): Promise<() => void> {
      // It pauses before it takes a place: others can use the place meanwhile.
      const pause = slowStart.waitFor(target)
      if (pause > 0) await sleep(pause, undefined, { signal: stopping })
      const leave = once(await (isFailing ? failing : healthy).enter(target.endpoint, target.owner))
      await new Promise<void>((resolve) => starts.enter(resolve, { asker: target.owner }) && resolve())
      if (stopping.aborted) leave()
      stopping.throwIfAborted()
      return leave
    },

    /** The outcome of an attempt says how much the endpoint can bear. */
    ended(target: Target, { result }: Outcome): void {
      if (result === 'acknowledged') slowStart.succeeded(target)
      else slowStart.failed(target)
    },
  }
}
