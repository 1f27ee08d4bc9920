import { randomUUID } from 'node:crypto'
import { type Change, ConditionFailed, type Store } from './store.ts'

/**
 * Runs a change when all earlier changes are done, and answers with its result. The change must put the conditions
 * `held` into its commits, so that they apply only while it holds the lock.
 */
export type InLock = <T>(change: (held: readonly Change[]) => Promise<T>) => Promise<T>

/** A node that holds a lock for longer than this counts as gone, milliseconds. */
const patienceMs = 10_000

const prefix = 'lock/'

/** A lock as it is stored. A free lock stays in the store, so that its number only grows. */
interface Holding {
  /** Fencing number: higher than that of every earlier holder. */
  number: number
  /** Random id of the holder. Null: the lock is free. */
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

/** Locks on this node: each key has one holder at a time, in the order of the calls. */
export function createLocks() {
  const last = new Map<string, Promise<void>>()

  return {
    take,

    /** Runs the work after the work of all earlier calls with this key, and answers with its result. */
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

/** A lock between nodes. The stored holding decides. It is replaced only while it is the one that the node expects. */
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
        release() // The commit may have been applied.
        throw error
      }
    }
  }

  /** Waits until the stored holding differs from `before`. Resolves with false when that takes too long. */
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

  /** Replaces the stored holding. False when another node was first: `stored` is then the holding of that node. */
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
      // A node that is still starting does not follow changes yet.
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
