import type { Change, Store } from '../../store/store.ts'

/** Wraps a store whose commits can fail or wait, and whose reads can fail. */
export function createFailingStore() {
  let failing: (changes: readonly Change[]) => boolean = () => false
  let failingReads: (key: string) => boolean = () => false
  let holds: (changes: readonly Change[]) => boolean = () => false
  let held: (() => void)[] = []
  let arrived = () => {}
  let refused = 0

  return {
    wrap: (store: Store): Store => ({
      ...store,
      get: (key) => (failingReads(key) ? Promise.reject(new Error('read error')) : store.get(key)),
      commit: async (changes, underway) => {
        if (changes.length > 0 && holds(changes)) {
          await new Promise<void>((resolve) => {
            held.push(resolve)
            arrived()
          })
        }
        if (changes.length > 0 && failing(changes)) {
          refused++
          throw new Error('disk full')
        }
        return store.commit(changes, underway)
      },
    }),
    /** From now on, commits fail: all, or those for which `which` returns true. */
    fail(which: (changes: readonly Change[]) => boolean = () => true): void {
      failing = which
    },
    failReads(which: (key: string) => boolean): void {
      failingReads = which
    },
    heal(): void {
      failing = () => false
      failingReads = () => false
    },
    get refused() {
      return refused
    },
    /** From now on, commits wait until `release`. Resolves when a commit waits. */
    hold(which: (changes: readonly Change[]) => boolean = () => true): Promise<void> {
      holds = which
      return new Promise((resolve) => {
        arrived = resolve
      })
    },
    release(): void {
      holds = () => false
      for (const resolve of held) resolve()
      held = []
    },
  }
}

/** Whether a commit touches a key below `prefix`. */
export const touches = (prefix: string) => (changes: readonly Change[]) =>
  changes.some((change) => {
    const key = 'put' in change ? change.put : 'del' in change && change.del
    return key !== false && key.startsWith(prefix)
  })
