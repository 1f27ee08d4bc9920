import { ConditionFailed } from '../../store/store.ts'
import { untilDone } from '../../store/until-done.ts'

/**
 * Stores something as it is, for each one commit after the other: each says which record it replaces. Changes in quick
 * succession share a commit.
 */
export function createRecordCommits<Holder>(commit: (holder: Holder) => Promise<void>) {
  const storing = new Map<Holder, { current: Promise<void>; next?: Promise<void> }>()

  return async (holder: Holder): Promise<void> => {
    const underway = storing.get(holder)
    if (!underway) return begin(holder)
    underway.next ??= Promise.allSettled([underway.current]).then(() => begin(holder))
    return underway.next
  }

  function begin(holder: Holder): Promise<void> {
    const current = commit(holder)
    const underway = { current }
    storing.set(holder, underway)
    const over = () => {
      if (storing.get(holder) === underway && !('next' in underway)) storing.delete(holder)
    }
    current.then(over, over)
    return current
  }
}

/** Each in a commit of its own, so that one that is refused keeps back no other. Rejects with the first failure. */
export async function eachOf<Item>(all: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const results = await Promise.allSettled(all.map(work))
  const isFailure = (result: PromiseSettledResult<void>) =>
    result.status === 'rejected' && !(result.reason instanceof ConditionFailed)
  const failed = results.find(isFailure)
  if (failed?.status === 'rejected') throw failed.reason
}

/**
 * Session records that differ from memory, because the store did not answer. This node tries again every second until
 * `settle` has made the record of a client id right.
 */
export function createRepair(settle: (clientId: string) => Promise<void>) {
  const due = new Set<string>()
  const closing = new AbortController()
  let isRunning = false

  return {
    add(clientId: string): void {
      due.add(clientId)
      if (!isRunning) void untilSettled()
    },
    close: (): void => closing.abort(),
  }

  /** Never rejects. */
  async function untilSettled(): Promise<void> {
    isRunning = true
    while (due.size > 0 && !closing.signal.aborted) {
      await untilDone(settleAll, { failed: () => undefined, hasFailed: true, signal: closing.signal })
    }
    isRunning = false
  }

  async function settleAll(): Promise<void> {
    const settling = [...due]
    due.clear()
    await Promise.all(settling.map((clientId) => settle(clientId).catch(() => due.add(clientId))))
    if (due.size > 0) throw new Error('not all records are right')
  }
}
