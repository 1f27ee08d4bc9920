import { createLocks } from '../../store/lock.ts'

declare const held: unique symbol

/**
 * The name of a queue whose lock on this node is held. Functions that change a queue take it in place of the name, and
 * only `createQueueLocks` makes it.
 */
export type HeldQueue = string & { readonly [held]: true }

/**
 * Wraps a function that changes the queue named by its first argument. The function then waits for earlier changes of
 * that queue on this node.
 */
export function createQueueLocks() {
  const { hold } = createLocks()
  return <Others extends unknown[], Result>(
    change: (queue: HeldQueue, ...others: Others) => Promise<Result>,
  ) =>
    (queue: string, ...others: Others): Promise<Result> =>
      hold(queue, () => change(queue as HeldQueue, ...others))
}
