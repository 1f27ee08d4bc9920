import { setTimeout as delay } from 'node:timers/promises'
import type { Change, Store, Told } from './store.ts'

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
  /** Calls back with what changed without a call of this node that says so; `get` shows it already. */
  onChanged(listener: ChangeListener<T>): void
}

type ChangeListener<T> = (key: string, before: T | undefined, after: T | undefined) => void

/** Between two looks for what became of a commit that nobody answered, milliseconds, and how many there are. */
const lookMs = 1_000
const looks = 600

/**
 * Loads the collection `name` of the store, and follows what other nodes change in it.
 * Keys may hold any characters; documents must survive JSON.
 */
export async function createCollection<T>(store: Store, name: string): Promise<Collection<T>> {
  const documents = new Map<string, T>()
  const listeners: ChangeListener<T>[] = []
  const inDoubt = new Set<string>()
  const prefix = `${name}/`
  for await (const [key, value] of store.range(prefix))
    documents.set(nameOf(key), JSON.parse(value.toString()))
  store.watch?.(prefix, heard)

  return {
    get: (key) => documents.get(key),
    values: () => documents.values(),
    entries: () => documents.entries(),
    get size() {
      return documents.size
    },
    async put(key, document, alongside = []) {
      await commit(key, [{ put: pathOf(key), value: JSON.stringify(document) }, ...alongside])
      documents.set(key, document)
    },
    async delete(key, alongside = []) {
      if (!documents.has(key)) return false
      await commit(key, [{ del: pathOf(key) }, ...alongside])
      return documents.delete(key)
    },
    onChanged: (listener) => void listeners.push(listener),
  }

  function pathOf(key: string): string {
    return prefix + encodeURIComponent(key)
  }

  function nameOf(path: string): string {
    return decodeURIComponent(path.slice(prefix.length))
  }

  async function commit(key: string, changes: readonly Change[]): Promise<void> {
    try {
      await store.commit(changes)
      inDoubt.delete(key)
    } catch (error) {
      if (store.watch && !inDoubt.has(key)) void findOut(key)
      throw error
    }
  }

  function heard(change: Told): void {
    if ('tell' in change) return
    const key = nameOf('put' in change ? change.put : change.del)
    inDoubt.delete(key)
    show(key, 'put' in change ? change.value : undefined)
  }

  function show(key: string, value: Buffer | undefined): void {
    const before = documents.get(key)
    const after: T | undefined = value && JSON.parse(value.toString())
    if (after === undefined) documents.delete(key)
    else documents.set(key, after)
    for (const listener of listeners) listener(key, before, after)
  }

  /** A commit without an answer may have been applied: then the others were told of it, and this node was not. */
  async function findOut(key: string): Promise<void> {
    inDoubt.add(key)
    for (let look = 0; look < looks && inDoubt.has(key); look++) {
      try {
        // Nothing that this node sent before is applied after this.
        await store.commit([{ tell: 'settled', value: '' }])
        const value = await store.get(pathOf(key))
        // What was changed meanwhile is known better.
        if (inDoubt.delete(key)) show(key, value)
      } catch {
        await delay(lookMs, undefined, { ref: false })
      }
    }
    inDoubt.delete(key)
  }
}
