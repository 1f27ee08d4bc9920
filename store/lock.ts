import { randomUUID } from 'node:crypto'
import { type Change, ConditionFailed, type Store } from './store.ts'

/**
 * Runs `change` when all earlier changes are done, and resolves with its result. `change` must add the conditions
 * `held` to its commits: the commits then apply only while this node holds the lock.
 */
export type InLock = <T>(change: (held: readonly Change[]) => Promise<T>) => Promise<T>

/** If a node holds a lock for longer than this, another node may take the lock; milliseconds. */
const patienceMs = 10_000

const prefix = 'lock/'

/** The stored entry of a lock. A free lock keeps its entry in the store, because the next `number` must be higher. */
interface Holding {
  /** Fencing number: higher than that of every earlier holder. */
  number: number
  /** Random id of the holder. Null: the lock is free. */
  claim: string | null
}

/**
 * Makes a lock. Of all nodes that share the store, only one runs a change in this lock at a time. A change that first
 * checks the state (a name is free, a token is unused) therefore sees the result of the change before it. A node that
 * holds the lock for longer than `patience` (milliseconds) may lose it, and its commits then fail.
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

/** Locks within this node, one per key. A key has one holder at a time; callers get it in the order of their calls. */
export function createLocks() {
  const last = new Map<string, Promise<void>>()

  return {
    take,

    /** Runs `work` when the work of all earlier calls with this key has ended, and resolves with its result. */
    async hold<T>(key: string, work: () => Promise<T>): Promise<T> {
      const release = await take(key)
      try {
        return await work()
      } finally {
        release()
      }
    },
  }

  /** Resolves when all earlier callers have released this key. The result is a function that releases it again. */
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

/**
 * A lock between nodes: the entry `Holding` in the store says who holds it. A node takes or frees the lock by replacing
 * the entry, on condition that no other node has replaced it since this node read it.
 */
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
        release() // The store may have applied the commit.
        throw error
      }
    }
  }

  /** Resolves with true when the lock is no longer stored as `before`, or with false after `patience` milliseconds. */
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

  /** Replaces the holding `before`. If another node was faster, reads its holding into `stored`, and answers false. */
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
      // Reads the holding from the store, because a node that is still starting does not receive changes yet.
      stored = (await store.get(key))?.toString()
      return false
    }
  }

  /** Frees the lock. If that fails, another node takes the lock after `patience` milliseconds. */
  async function free(mine: string, number: number): Promise<void> {
    const left = JSON.stringify({ number, claim: null } satisfies Holding)
    await replace(mine, left).catch(() => undefined)
  }
}

function readHolding(stored: string | undefined): Holding {
  return stored === undefined ? { number: 0, claim: null } : JSON.parse(stored)
}
