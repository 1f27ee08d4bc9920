import type { Change, Store } from '../../store/store.ts'

const channel = 'work-retry'

/** Returns a function that ends the pause of a queue and tries it at once, on whichever node works it off. */
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

/** A change that stores nothing: its commit makes the other nodes end the pause of a queue and try the queue again. */
export function retryChange(queue: string): Change {
  return { tell: channel, value: queue }
}
