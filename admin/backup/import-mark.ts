import { storeKeys } from '../../store/keys.ts'
import type { Store } from '../../store/store.ts'

/**
 * Key of the mark of an unfinished import: no node uses a store that has this key. The mark is an id, new at each
 * start, and the checksum of the file.
 */
export const markKey = `${storeKeys.import.prefix}mark`

/** Key of the checksum of the export that was imported last. */
export const lastKey = `${storeKeys.import.prefix}last`

/** The checksum in a mark. */
export function checksumOf(mark = ''): string {
  return mark.slice(-64)
}

/** The checksum of the export that was imported last. */
export async function lastImport(store: Pick<Store, 'get'>): Promise<string | undefined> {
  const last = await store.get(lastKey)
  return last && checksumOf(last.toString())
}

export async function isImporting(store: Pick<Store, 'get'>): Promise<boolean> {
  return (await store.get(markKey)) !== undefined
}
