import type { Nodes } from '../../store/nodes/nodes.ts'
import type { Change, Store } from '../../store/store.ts'

const channel = 'work-retry'

/** Tries a queue again at once, whichever node works it off. */
export function createRetry(parts: {
  store: Pick<Store, 'onOthers' | 'commit'>
  nodes: Pick<Nodes, 'isShared'>
  runner: { retryNow(queue: string): void }
}) {
  const { store, nodes, runner } = parts
  store.onOthers(channel, (change) => {
    if ('tell' in change) runner.retryNow(change.value.toString())
  })

  return (queue: string): void => {
    runner.retryNow(queue)
    if (nodes.isShared) store.commit([retryChange(queue)]).catch(() => undefined)
  }
}

/** Makes the other nodes try a queue again when its commit is stored. */
export function retryChange(queue: string): Change {
  return { tell: channel, value: queue }
}
