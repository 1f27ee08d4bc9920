import { setTimeout as delay } from 'node:timers/promises'

/** Pause between two attempts, milliseconds. */
const usualPauseMs = 1_000

/**
 * Calls `attempt` until it succeeds. Resolves with the result, or with undefined if `isWanted` returned false or
 * `signal` was aborted.
 */
export async function untilDone<Result>(
  attempt: () => Promise<Result>,
  how: {
    /** Called after each attempt that failed. */
    failed: (error: unknown) => void
    /** Called after each pause. False ends the attempts. */
    isWanted?: () => boolean
    /**
     * An abort of this signal ends a pause at once, and prevents further attempts. Without a signal, a pause does not
     * keep the process alive.
     */
    signal?: AbortSignal
    pauseMs?: number
    /** Whether an attempt has failed before the call: `untilDone` then begins with a pause. */
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
