import { setTimeout as delay } from 'node:timers/promises'

/** Pause between two attempts, milliseconds. */
const usualPauseMs = 1_000

/**
 * Repeats an attempt until the store takes its changes, because they record something that has already happened.
 * Resolves with the result, or with undefined if it is no longer wanted or `signal` has ended the attempts.
 */
export async function untilDone<Result>(
  attempt: () => Promise<Result>,
  how: {
    /** Called after each attempt that failed. */
    failed: (error: unknown) => void
    /** Asked after each pause. */
    isWanted?: () => boolean
    /** Ends a pause and all further attempts. A pause without a signal does not keep the process alive. */
    signal?: AbortSignal
    pauseMs?: number
    /** An attempt has failed already: a pause comes first. */
    hasFailed?: boolean
  },
): Promise<{ result: Result } | undefined> {
  const { failed, isWanted = () => true, signal, pauseMs = usualPauseMs, hasFailed = false } = how
  for (let needsPause = hasFailed; ; needsPause = true) {
    if (needsPause) {
      // The pause rejects when `signal` ends it.
      await delay(pauseMs, undefined, signal ? { signal } : { ref: false }).catch(() => undefined)
      if (signal?.aborted || !isWanted()) return undefined
    }
    try {
      return { result: await attempt() }
    } catch (error) {
      failed(error)
    }
  }
}
