import type { Change, Store } from '../../store/store.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'

/** Acknowledgements wait so long for company; one lost in a crash only repeats a delivery. */
const delayMs = 50
/** After the store refused. */
const retryMs = 1000

/**
 * What is over and must leave the store, collected: it goes with the next event, or after a moment on its
 * own. Each of it is deleted under a key that is never used again, so that it may be late.
 */
export function createFinished(parts: { store: Store; log: Log; metrics: Metrics }) {
  const { store, log, metrics } = parts
  let changes: Change[] = []
  let timer: NodeJS.Timeout | undefined
  let closed = false

  return {
    add(more: readonly Change[]): void {
      changes.push(...more)
      wait(delayMs)
    },
    /** Hands the changes to a caller that commits them, or puts them back. */
    take(): Change[] {
      const taken = changes
      changes = []
      return taken
    },
    putBack(taken: readonly Change[]): void {
      changes = [...taken, ...changes]
      wait(retryMs)
    },
    /** Tries once more; what is refused now is found at the next start. */
    async close(): Promise<void> {
      closed = true
      await flush()
    },
  }

  function wait(ms: number): void {
    if (!closed) timer ??= setTimeout(() => void flush(), ms)
  }

  /** Never rejects. */
  async function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    const taken = changes
    changes = []
    if (taken.length === 0) return
    try {
      await store.commit(taken)
    } catch (error) {
      metrics.storeFailures.inc()
      log.error({ err: error }, 'acknowledgements not stored')
      changes = [...taken, ...changes]
      wait(retryMs)
    }
  }
}
