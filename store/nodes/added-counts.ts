import type { Store } from '../store.ts'

/** How long a node collects counts before one commit sends them, milliseconds. */
const batchMs = 100

/**
 * Makes a function that sends a count to the other nodes, without waiting for the store. All nodes call
 * `createAddedCounts` with the same `name`. `onOthers` is called with each count that another node sends. If the commit
 * fails, the counts are lost.
 */
export function createAddedCounts(
  store: Store | undefined,
  name: string,
  onOthers: (key: string, count: number) => void,
): (key: string, count?: number) => void {
  if (!store?.isShared) return () => {}
  const { commit } = store
  const channel = `tally ${name}`
  const untold = new Map<string, number>()

  store.onTold(channel, (value) => {
    const counts: [string, number][] = JSON.parse(value.toString())
    for (const [key, count] of counts) onOthers(key, count)
  })

  return (key, count = 1) => {
    if (untold.size === 0) setTimeout(tell, batchMs).unref()
    untold.set(key, (untold.get(key) ?? 0) + count)
  }

  function tell(): void {
    const value = JSON.stringify([...untold])
    untold.clear()
    commit([{ tell: channel, value }]).catch(() => undefined)
  }
}
