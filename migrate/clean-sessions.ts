import { storeKeys } from '../store/keys.ts'
import type { Store } from '../store/store.ts'

/*
 * Nodes of 3.0.0-beta.2 and 3.0.0-beta.3 that share a store had clean sessions among the persistent ones. A node that ends
 * with kill -9 leaves its own behind. This file ends with 4.0.0.
 */

const perCommit = 500

/** Removes the clean sessions of nodes of those releases. None of these nodes runs any more. */
export async function removeCleanSessions(store: Store): Promise<void> {
  const left: string[] = []
  for await (const [key, value] of store.range(storeKeys.session.prefix)) {
    const record: { clean: boolean } = JSON.parse(value.toString())
    if (record.clean) left.push(key)
  }
  for (let at = 0; at < left.length; at += perCommit) {
    await store.commit(left.slice(at, at + perCommit).map((del) => ({ del })))
  }
}
