import type { Change, Store } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'

/** Acknowledgements wait so long for company; one lost in a crash only repeats a delivery. */
const delayMs = 50

/**
 * What acknowledgements take out of the store, collected: it goes with the next event, or after a moment
 * on its own. A packet identifier used again is stored later than its end, because commits keep their order.
 */
export function createFinished(store: Store, log: Log) {
  let changes: Change[] = []
  let timer: NodeJS.Timeout | undefined

  return {
    add(more: readonly Change[]): void {
      changes.push(...more)
      timer ??= setTimeout(() => void flush(), delayMs)
    },
    /** Hands the changes to a caller that commits them, or puts them back. */
    take(): Change[] {
      const taken = changes
      changes = []
      return taken
    },
    putBack(taken: readonly Change[]): void {
      changes = [...taken, ...changes]
      timer ??= setTimeout(() => void flush(), delayMs)
    },
    flush,
  }

  async function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    const taken = changes
    changes = []
    try {
      await store.commit(taken)
    } catch (error) {
      log.error({ err: error }, 'acknowledgements not stored')
      changes = [...taken, ...changes]
    }
  }
}
