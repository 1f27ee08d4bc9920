import { storeKeys } from '../store/keys.ts'
import type { Store } from '../store/store.ts'

/*
 * 3.0.0-beta.1 stored the feed as the document it had read, and each livestream that fell out of the feed under a key of
 * its own. 3.0.0-beta.2 copied both into the present form, and left them in a Redis, where a node of 3.0.0-beta.1 could
 * have run. This file ends with 3.1.0.
 */

/** Removes the feeds of 3.0.0-beta.1 that 3.0.0-beta.2 has copied. */
export async function removeCopiedFeeds(store: Store): Promise<void> {
  const { prefix } = storeKeys.feed
  const keys: string[] = []
  for (const key of [`${prefix}last`, `${prefix}confirmed`]) if (await store.get(key)) keys.push(key)
  for await (const [key] of store.range(`${prefix}former/`)) keys.push(key)
  for (let at = 0; at < keys.length; at += 1_000) {
    await store.commit(keys.slice(at, at + 1_000).map((del) => ({ del })))
  }
}
