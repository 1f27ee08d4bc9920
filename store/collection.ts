import { type Family, namedKeys } from './keys.ts'
import type { Change, Store } from './store.ts'

/** JSON documents below one prefix of the store, mirrored in memory. */
interface Collection<T> {
  get(key: string): T | undefined
  values(): IterableIterator<T>
  entries(): IterableIterator<[string, T]>
  readonly size: number
  /** Commits the document and the changes `alongside`. Then `get` returns the document. Rejects if the commit fails. */
  put(key: string, document: T, alongside?: readonly Change[]): Promise<void>
  /**
   * Commits several documents and the changes `alongside`, all or none. An undefined document removes the stored one.
   */
  change(
    documents: readonly (readonly [key: string, document: T | undefined])[],
    alongside?: readonly Change[],
  ): Promise<void>
  /** Resolves with false if there is no such document. */
  delete(key: string, alongside?: readonly Change[]): Promise<boolean>
  /** A condition for a commit: the stored document is still the one that `get` returns now. */
  unchanged(key: string): Change
  /**
   * Calls `listener` for each change of another node, after `get` has the new document. A commit of this node can
   * reject because Redis did not answer in time. If Redis has applied such a commit, `listener` gets the changes of
   * that commit too.
   */
  onChanged(listener: ChangeListener<T>): void
}

type ChangeListener<T> = (key: string, before: T | undefined, after: T | undefined) => void

/**
 * Loads the documents of a family, and follows the changes of other nodes (`onOthers`). Keys may hold any characters;
 * documents must survive JSON.
 */
export async function createCollection<T>(
  store: Store,
  family: Pick<Family, 'prefix'>,
): Promise<Collection<T>> {
  const { prefix, keyOf, nameOf } = namedKeys(family)
  const documents = new Map<string, T>()
  const listeners: ChangeListener<T>[] = []
  for await (const [path, value] of store.range(prefix)) show(path, value)
  store.onOthers(prefix, show)

  return {
    get: (key) => documents.get(key),
    values: () => documents.values(),
    entries: () => documents.entries(),
    get size() {
      return documents.size
    },
    put: (key, document, alongside) => change([[key, document]], alongside),
    change,
    async delete(key, alongside) {
      if (!documents.has(key)) return false
      await change([[key, undefined]], alongside)
      return true
    },
    unchanged(key) {
      const document = documents.get(key)
      const when = document === undefined ? 'absent' : { value: JSON.stringify(document) }
      return { check: keyOf(key), when }
    },
    onChanged: (listener) => void listeners.push(listener),
  }

  async function change(
    changed: Parameters<Collection<T>['change']>[0],
    alongside: readonly Change[] = [],
  ): Promise<void> {
    await store.commit([...changed.map(([key, document]) => changeOf(key, document)), ...alongside])
    for (const [key, document] of changed) {
      if (document === undefined) documents.delete(key)
      else documents.set(key, document)
    }
  }

  function changeOf(key: string, document: T | undefined): Change {
    if (document === undefined) return { del: keyOf(key) }
    return { put: keyOf(key), value: JSON.stringify(document) }
  }

  function show(path: string, value: Buffer | undefined): void {
    const key = nameOf(path)
    const before = documents.get(key)
    const after: T | undefined = value && JSON.parse(value.toString())
    if (after === undefined) documents.delete(key)
    else documents.set(key, after)
    for (const listener of listeners) listener(key, before, after)
  }
}
