import { randomUUID } from 'node:crypto'
import { type Change, ConditionFailed, type Store } from './store.ts'

/**
 * Runs a change when all earlier changes are done, and answers with its result. The change puts `held` into its
 * commits: they apply only while the lock is its own.
 */
export type InLock = <T>(change: (held: readonly Change[]) => Promise<T>) => Promise<T>

/** A node that holds a lock for longer than this counts as gone, milliseconds. */
const patienceMs = 10_000

const prefix = 'lock/'

/** A lock as it is stored. It stays, so that its number only grows. */
interface Holding {
  /** Fencing number: each holder has a higher one than those before. */
  number: number
  /** The claim that holds it; null: it is free. */
  claim: string | null
}

/**
 * Runs changes one after another, on all nodes that share the store. A change that decides by the present state (a
 * name is free, a token was not used) finds the state that the change before left. A node that holds the lock for too
 * long loses it, and its commits fail.
 */
export async function createLock(store: Store, name: string, patience = patienceMs): Promise<InLock> {
  const take = store.isShared ? await createSharedLock(store, prefix + name, patience) : undefined
  const here = createLocks()
  return (change) =>
    here.hold('', async () => {
      if (!take) return change([])
      const { held, release } = await take()
      try {
        return await change(held)
      } finally {
        release()
      }
    })
}

/** One at a time by key, in the order of the calls, on this node. */
export function createLocks() {
  const last = new Map<string, Promise<void>>()

  return {
    take,

    /** Runs the work when the work of earlier calls with this key is over, and answers with its result. */
    async hold<T>(key: string, work: () => Promise<T>): Promise<T> {
      const release = await take(key)
      try {
        return await work()
      } finally {
        release()
      }
    },
  }

  /** Resolves when earlier locks of this key are released, with the function that releases this one. */
  async function take(key: string): Promise<() => void> {
    const before = last.get(key)
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    last.set(key, held)
    void held.then(() => {
      if (last.get(key) === held) last.delete(key)
    })
    await before
    return release
  }
}

/** The same between nodes: the stored holding decides. Each change of it applies only to the holding that it expects. */
async function createSharedLock(store: Store, key: string, patience: number) {
  let stored = (await store.get(key))?.toString()
  let changed = () => {}
  store.onOthers(prefix, (change) => {
    if (!('put' in change) || change.put !== key) return
    stored = change.value.toString()
    changed()
  })

  return async (): Promise<{ held: readonly Change[]; release: () => void }> => {
    const claim = randomUUID()
    for (;;) {
      const before = stored
      const { number, claim: holder } = readHolding(before)
      const isLost = holder !== null && !(await isMoved(before))
      if (holder !== null && !isLost) continue
      const mine = JSON.stringify({ number: number + 1, claim } satisfies Holding)
      const release = () => void free(mine, number + 1)
      try {
        if (await replace(before, mine)) return { held: [{ check: key, when: { value: mine } }], release }
      } catch (error) {
        release() // It may have been applied.
        throw error
      }
    }
  }

  /** Waits until the holding is another one; false when that takes too long. */
  function isMoved(before: string | undefined): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, patience, false)
      changed = () => {
        clearTimeout(timer)
        resolve(true)
      }
      if (stored !== before) changed()
    })
  }

  /** False when another node was first, which this one has heard by then. */
  async function replace(before: string | undefined, after: string): Promise<boolean> {
    try {
      await store.commit([
        { put: key, value: after, when: before === undefined ? 'absent' : { value: before } },
      ])
      stored = after
      changed()
      return true
    } catch (error) {
      if (!(error instanceof ConditionFailed)) throw error
      // While a node starts it is not told of changes yet.
      stored = (await store.get(key))?.toString()
      return false
    }
  }

  /** If this fails, the other nodes take the lock after their patience. */
  async function free(mine: string, number: number): Promise<void> {
    const left = JSON.stringify({ number, claim: null } satisfies Holding)
    await replace(mine, left).catch(() => undefined)
  }
}

function readHolding(stored: string | undefined): Holding {
  return stored === undefined ? { number: 0, claim: null } : JSON.parse(stored)
}
