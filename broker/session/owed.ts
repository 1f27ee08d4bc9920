import type { Change, Store } from '../../store/store.ts'

/** Between two attempts, milliseconds. */
const retryMs = 1_000

/**
 * Session records that are not stored as they are in memory, because the store did not answer. Nobody says
 * again what became of a session, so this node does, as soon as that works.
 */
export function createOwed(parts: {
  store: Store
  /** What makes the record of a client id right, as things are by now. */
  changesFor: (clientId: string) => readonly Change[]
}) {
  const { store, changesFor } = parts
  const clientIds = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  return {
    add(clientId: string): void {
      clientIds.add(clientId)
      wait()
    },
    close(): void {
      isClosed = true
      clearTimeout(timer)
    },
  }

  function wait(): void {
    if (!isClosed) timer ??= setTimeout(() => void settle(), retryMs)
  }

  /** Never rejects. */
  async function settle(): Promise<void> {
    const settling = [...clientIds]
    clientIds.clear()
    try {
      await store.commit(settling.flatMap(changesFor))
      timer = undefined
    } catch {
      timer = undefined
      for (const clientId of settling) clientIds.add(clientId)
    }
    if (clientIds.size > 0) wait()
  }
}
