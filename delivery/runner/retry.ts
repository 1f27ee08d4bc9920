import type { Change, Store } from '../../store/store.ts'
import type { OwnedEndpoint } from '../target.ts'

const channel = 'work-retry'
const recoveredChannel = 'endpoint-recovered'

/** Returns a function that ends the pause of a queue, whichever node works the queue off. */
export function createRetry(parts: {
  store: Pick<Store, 'onTold' | 'commit'>
  runner: { retryNow(queue: string): void; endPauses(of: OwnedEndpoint): void }
}) {
  const { store, runner } = parts
  store.onTold(channel, (queue) => runner.retryNow(queue.toString()))
  store.onTold(recoveredChannel, (value) => {
    const { endpoint, owner }: OwnedEndpoint = JSON.parse(value.toString())
    runner.endPauses({ endpoint, owner })
  })

  return (queue: string): void => {
    runner.retryNow(queue)
    store.commit([retryChange(queue)]).catch(() => undefined)
  }
}

/** A change that tells the other nodes of an endpoint that answers again. It stores nothing. */
export function recoveredChange({ endpoint, owner }: OwnedEndpoint): Change {
  return { tell: recoveredChannel, value: JSON.stringify({ endpoint, owner }) }
}

/** A change that makes the other nodes try a queue at once. It stores nothing. */
export function retryChange(queue: string): Change {
  return { tell: channel, value: queue }
}
