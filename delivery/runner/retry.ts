import type { Change, Store } from '../../store/store.ts'

const channel = 'work-retry'

/** Returns a function that ends the pause of a queue, whichever node works the queue off. */
export function createRetry(parts: {
  store: Pick<Store, 'onOthers' | 'commit'>
  runner: { retryNow(queue: string): void }
}) {
  const { store, runner } = parts
  store.onOthers(channel, (change) => {
    if ('tell' in change) runner.retryNow(change.value.toString())
  })

  return (queue: string): void => {
    runner.retryNow(queue)
    store.commit([retryChange(queue)]).catch(() => undefined)
  }
}

/** A change that makes the other nodes try a queue at once. It stores nothing. */
export function retryChange(queue: string): Change {
  return { tell: channel, value: queue }
}
