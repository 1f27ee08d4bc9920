import type { Store } from '../../store/store.ts'

/** Says which export is being taken in, by its checksum: until that is over, nobody may use the store. */
export const markKey = 'import/mark'

/** Says what was taken in last. */
export const lastKey = 'import/last'

export async function isImporting(store: Pick<Store, 'get'>): Promise<boolean> {
  return (await store.get(markKey)) !== undefined
}
