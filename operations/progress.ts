import { setTimeout as delay } from 'node:timers/promises'
import type { Lines } from './lines.ts'

/** Time between two lines of progress, milliseconds. */
const everyMs = 2_000

/** A line about a long piece of work: its progress, or how it ended. */
type WorkLine = { progress: unknown } | { result: unknown } | { error: unknown }

/**
 * Does long work. Yields lines of progress, and at last a line about the end. If the reader leaves, the work is
 * aborted.
 */
export function workWithProgress(
  work: (signal: AbortSignal) => Promise<unknown>,
  { progress, failed }: { progress: () => unknown; failed: (error: unknown) => unknown },
): Lines {
  const ending = new AbortController()
  const ended: Promise<WorkLine> = work(ending.signal).then(
    (result) => ({ result }),
    (error: unknown) => ({ error: failed(error) }),
  )
  let isTold = false

  const lines: Lines = {
    [Symbol.asyncIterator]: () => lines,
    async next() {
      if (isTold) return { value: undefined, done: true }
      const waiting = new AbortController()
      const later = delay(everyMs, undefined, { signal: waiting.signal }).catch(() => undefined)
      const line = await Promise.race([ended, later])
      waiting.abort()
      isTold = line !== undefined
      return { value: line ?? { progress: progress() }, done: false }
    },
    async return() {
      ending.abort()
      await ended
      isTold = true
      return { value: undefined, done: true }
    },
  }
  return lines
}
