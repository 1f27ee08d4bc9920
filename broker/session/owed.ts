import type { Change } from '../../store/store.ts'

/** Between two attempts, milliseconds. */
const retryMs = 1_000

/**
 * Session records that differ from memory, because the store did not answer. This node tries again every second until
 * the store has them. `settle` writes the record of a client id as memory has it by then, and makes the removals that
 * were due with it.
 */
export function createOwed(settle: (clientId: string, removal: readonly Change[]) => Promise<void>) {
  /** The removals that are due, by client id. */
  const owed = new Map<string, readonly Change[]>()
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  return {
    add,
    close(): void {
      isClosed = true
      clearTimeout(timer)
    },
  }

  function add(clientId: string, removal: readonly Change[] = []): void {
    owed.set(clientId, [...(owed.get(clientId) ?? []), ...removal])
    wait()
  }

  function wait(): void {
    if (!isClosed) timer ??= setTimeout(() => void settleAll(), retryMs)
  }

  /** Never rejects. */
  async function settleAll(): Promise<void> {
    const settling = [...owed]
    owed.clear()
    await Promise.all(
      settling.map(([clientId, removal]) => settle(clientId, removal).catch(() => add(clientId, removal))),
    )
    timer = undefined
    if (owed.size > 0) wait()
  }
}
