import { holds, isConditional, keyOf, numbersTaken, withNumber } from '../../store/commit.ts'
import { type Change, ConditionFailed, type Store } from '../../store/store.ts'
import { keysBelow } from '../../store/stored-value.ts'

/** What becomes of a commit. `torn`: the commit rejects although its changes are stored. */
export type Fate = 'stored' | 'refused' | 'torn'

/** A store in memory that outlives its hub. A test can make commits fail or hold them back. */
export function createMemoryStore(from: ReadonlyMap<string, Buffer> = new Map(), lastNumber = 0) {
  const entries = new Map(from)
  let fateOf: (changes: readonly Change[]) => Fate = () => 'stored'
  let last: Promise<unknown> = Promise.resolve()
  let open = Promise.resolve()
  let release = () => {}

  const store: Store = {
    driver: 'embedded',
    isShared: false,
    onOthers: () => undefined,
    onTold: () => undefined,
    catchUp: async () => undefined,
    get: async (key) => entries.get(key),
    lastNumber: async () => lastNumber,
    async *range(prefix, bounds = {}) {
      const { gte, lt } = keysBelow(prefix, bounds)
      const keys = [...entries.keys()].filter((key) => key >= gte && key < lt).sort()
      for (const key of keys.slice(0, bounds.most)) {
        const value = entries.get(key)
        if (value) yield [key, value]
      }
    },
    async last(prefix, count, before) {
      const keys = [...entries.keys()].filter((key) => key.startsWith(prefix)).sort()
      const found = keys.filter((key) => before === undefined || key < prefix + before)
      return found
        .reverse()
        .slice(0, count)
        .flatMap((key): [string, Buffer][] => [[key, entries.get(key) ?? Buffer.alloc(0)]])
    },
    commit(changes) {
      if (changes.length === 0) return Promise.resolve(0)
      const fate = fateOf(changes)
      // Applies commits in order, each in a later turn of the event loop than its call.
      const done = last.then(async () => {
        await new Promise((resolve) => setImmediate(resolve))
        await open
        const broken = changes
          .filter(isConditional)
          .find((change) => !holds(change.when, entryOf(keyOf(change))))
        if (fate !== 'refused' && broken) throw new ConditionFailed(keyOf(broken))
        const taken = fate === 'refused' ? 0 : numbersTaken(changes)
        const first = taken === 0 ? 0 : lastNumber + 1
        lastNumber += taken
        if (fate !== 'refused') apply(changes.map((change) => withNumber(change, first)))
        if (fate !== 'stored') throw new Error('disk full')
        return first
      })
      last = done.catch(() => undefined)
      return done
    },
    close: async () => undefined,
  }

  function entryOf(key: string) {
    const value = entries.get(key)
    return value && { value, time: undefined }
  }

  function apply(changes: readonly Change[]): void {
    for (const change of changes) {
      if ('put' in change) entries.set(change.put, Buffer.from(change.value))
      else if ('del' in change) entries.delete(change.del)
    }
  }

  return {
    store,
    /** The current entries of the store. */
    entries,
    keys: (prefix: string): string[] => [...entries.keys()].filter((key) => key.startsWith(prefix)).sort(),
    /**
     * From now on, `how` decides the fate of each commit. It decides at the call of `commit`, before the changes are
     * applied.
     */
    judge(how: (changes: readonly Change[]) => Fate): void {
      fateOf = how
    },
    /** From now on, commits wait until `release` is called. */
    hold(): void {
      open = new Promise((resolve) => {
        release = resolve
      })
    },
    release(): void {
      release()
    },
    /** A new store with the same content, as after a crash of the hub. */
    crashed: () => createMemoryStore(entries, lastNumber),
  }
}
