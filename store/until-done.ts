import { setTimeout as delay } from 'node:timers/promises'

/** Between two attempts, milliseconds. */
const usualPauseMs = 1_000

/**
 * Attempts something until the store takes it: what has happened cannot be undone, so it is stored as soon as that works.
 * Answers with the result; undefined when it is no longer wanted.
 */
export async function untilDone<Result>(
  attempt: () => Promise<Result>,
  how: {
    /** Told of each attempt that failed. */
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
      // Rejects when the signal ends it.
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
