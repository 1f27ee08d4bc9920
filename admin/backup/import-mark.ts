import type { Store } from '../../store/store.ts'

/**
 * Key of the mark of an import: the start of the node that imports, and the checksum of its file. No node uses a store
 * with this key.
 */
export const markKey = 'import/mark'

/** The checksum of the last import. */
export const lastKey = 'import/last'

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
