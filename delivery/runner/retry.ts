import type { Change, Store } from '../../store/store.ts'

const channel = 'work-retry'

/** Tries a queue again at once, whichever node works it off. */
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

/** A change that makes the other nodes try a queue again, once its commit is stored. */
export function retryChange(queue: string): Change {
  return { tell: channel, value: queue }
}
