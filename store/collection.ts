import type { Change, Store } from './store.ts'

/** JSON documents below one prefix of the store, mirrored in memory so that reads cost nothing. */
export interface Collection<T> {
  get(key: string): T | undefined
  values(): IterableIterator<T>
  entries(): IterableIterator<[string, T]>
  readonly size: number
  /** Stores the document together with `alongside`, then shows it. Rejects when it cannot be stored. */
  put(key: string, document: T, alongside?: readonly Change[]): Promise<void>
  /** False when there is no such document. */
  delete(key: string, alongside?: readonly Change[]): Promise<boolean>
}

/**
 * Loads the collection `name` of the store.
 * Keys may hold any characters; documents must survive JSON.
 */
export async function createCollection<T>(store: Store, name: string): Promise<Collection<T>> {
  const documents = new Map<string, T>()
  const prefix = `${name}/`
  for await (const [key, value] of store.range(prefix)) {
    documents.set(decodeURIComponent(key.slice(prefix.length)), JSON.parse(value.toString()))
  }
  const pathOf = (key: string) => prefix + encodeURIComponent(key)

  return {
    get: (key) => documents.get(key),
    values: () => documents.values(),
    entries: () => documents.entries(),
    get size() {
      return documents.size
    },
    async put(key, document, alongside = []) {
      await store.commit([{ put: pathOf(key), value: JSON.stringify(document) }, ...alongside])
      documents.set(key, document)
    },
    async delete(key, alongside = []) {
      if (!documents.has(key)) return false
      await store.commit([{ del: pathOf(key) }, ...alongside])
      return documents.delete(key)
    },
  }
}
