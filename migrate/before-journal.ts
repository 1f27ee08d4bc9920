import { storeKeys } from '../store/keys.ts'
import type { Dumpable, Store } from '../store/store.ts'

/*
 * 3.0.0-beta.1 kept messages in the queues of sessions, and had no journal. 3.0.0-beta.2 takes such a store over. This
 * file ends with 4.0.0.
 */

/** Prefixes that only 3.0.0-beta.1 has written, and the one of 3.0.0-beta.2 while it takes the store over. */
const formerPrefixes = ['queue/', 'body/', 'retained-body/', 'work-body/', 'take-over/']

/** How values of 3.0.0-beta.1 differ from present ones, by the prefix that both have. */
const formerValues: [prefix: string, isFormer: (value: string) => boolean][] = [
  [storeKeys.session.prefix, (value) => !value.includes('"upTo"')],
  // Present values begin with a position.
  [storeKeys.retained.prefix, (value) => value.startsWith('{')],
  [storeKeys.work.prefix, (value) => value.startsWith('{')],
  [storeKeys.workDead.prefix, (value) => value.startsWith('{')],
]

/** Rejects if 3.0.0-beta.1 has written the store, which has no format then. */
export async function refuseBeforeJournal(store: Store & Dumpable): Promise<void> {
  if (!(await isBeforeJournal(store))) return
  throw new Error(
    '3.0.0-beta.1 has written the store, and only 3.0.0-beta.2 can take it over: start 3.0.0-beta.2 on it until it says "hub ready", then this release',
  )
}

async function isBeforeJournal(store: Store & Dumpable): Promise<boolean> {
  if (await store.hasFormer()) return true
  for (const prefix of formerPrefixes) if (await first(store, prefix)) return true
  for (const [prefix, isFormer] of formerValues) {
    const value = await first(store, prefix)
    if (value && isFormer(value.toString())) return true
  }
  return false
}

async function first(store: Store, prefix: string): Promise<Buffer | undefined> {
  for await (const [, value] of store.range(prefix, { most: 1 })) return value
  return undefined
}
