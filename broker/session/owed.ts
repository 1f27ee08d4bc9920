import type { Change } from '../../store/store.ts'

/** Between two attempts, milliseconds. */
const retryMs = 1_000

/**
 * Session records that are not stored as they are in memory, because the store did not answer. Nobody says
 * again what became of a session, so this node does, as soon as that works. `settle` makes the record of a client id
 * right, as things are by now, and removes what was to be removed with it.
 */
export function createOwed(settle: (clientId: string, removal: readonly Change[]) => Promise<void>) {
  /** By client id, with what is to be removed. */
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
