import type { Store } from '../../store/store.ts'

/** Which export is being taken in, and by which start of a node: until that is over, nobody may use the store. */
export const markKey = 'import/mark'

/** Says what was taken in last. */
export const lastKey = 'import/last'

/** The checksum in a mark. */
export function checksumOf(mark = ''): string {
  return mark.slice(-64)
}

/** The checksum of the export that was taken in last. */
export async function lastImport(store: Pick<Store, 'get'>): Promise<string | undefined> {
  const last = await store.get(lastKey)
  return last && checksumOf(last.toString())
}

export async function isImporting(store: Pick<Store, 'get'>): Promise<boolean> {
  return (await store.get(markKey)) !== undefined
}
