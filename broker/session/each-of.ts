import { ConditionFailed } from '../../store/store.ts'

/** Maximum number of calls at the same time. 20,000 calls stopped the node for seconds, and took 1 GB. */
const atOnce = 100

/**
 * Calls `work` for all items, and ignores `ConditionFailed`. After all calls have ended, rejects if there was another
 * error. Rejects with the first such error.
 */
export async function eachOf<Item>(all: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const isFailure = (result: PromiseSettledResult<void>): result is PromiseRejectedResult =>
    result.status === 'rejected' && !(result.reason instanceof ConditionFailed)
  let failed: PromiseRejectedResult | undefined
  for (let from = 0; from < all.length; from += atOnce) {
    const results = await Promise.allSettled(all.slice(from, from + atOnce).map(work))
    failed ??= results.find(isFailure)
  }
  if (failed) throw failed.reason
}
