import { randomUUID } from 'node:crypto'
import { storeKeys } from './keys.ts'
import { type Change, ConditionFailed, type Store } from './store.ts'

/**
 * Runs `change` after all earlier changes in this lock. Each commit of `change` must contain the conditions `held`: the
 * commit then fails if this node has lost the lock.
 */
export type InLock = <T>(change: (held: readonly Change[]) => Promise<T>) => Promise<T>

/** After this time, another node can take the lock from its holder; milliseconds. */
const patienceMs = 10_000

const { prefix } = storeKeys.lock

/** The stored entry of a lock. A free lock keeps the entry, because the next `number` must be higher. */
interface Holding {
  /** Fencing number: higher than that of every earlier holder. */
  number: number
  /** Random id of the holder. Null: the lock is free. */
  claim: string | null
}

/**
 * Makes a lock. Of all nodes that share the store, one at a time runs a change. A change that outlasts `patience`
 * (milliseconds) can lose the lock, and its conditions `held` then fail.
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

/** Locks within this node, one per key. Callers get a lock in the order of their calls. */
export function createLocks() {
  /** The end of the last work of each key. */
  const last = new Map<string, Promise<void>>()

  return {
    hold<T>(key: string, work: () => Promise<T>): Promise<T> {
      const done = (last.get(key) ?? Promise.resolve()).then(work)
      const end = () => {
        if (last.get(key) === ended) last.delete(key)
      }
      const ended = done.then(end, end)
      last.set(key, ended)
      return done
    },
  }
}

async function createSharedLock(store: Store, key: string, patience: number) {
  let stored = (await store.get(key))?.toString()
  let changed = () => {}
  store.onOthers(prefix, (other, value) => {
    if (other !== key || !value) return
    stored = value.toString()
    changed()
  })

  return async (): Promise<{ held: readonly Change[]; release: () => void }> => {
    const claim = randomUUID()
    for (;;) {
      const before = stored
      const { number, claim: holder }: Holding =
        before === undefined ? { number: 0, claim: null } : JSON.parse(before)
      if (holder !== null && (await isMoved(before))) continue
      const mine = JSON.stringify({ number: number + 1, claim } satisfies Holding)
      const release = () => void free(mine, number + 1)
      try {
        if (await replace(before, mine)) return { held: [{ check: key, when: { value: mine } }], release }
      } catch (error) {
        release() // The store may have applied the commit: then this frees the lock.
        throw error
      }
    }
  }

  /** Whether the stored holding changes from `before` within `patience` milliseconds. */
  function isMoved(before: string | undefined): Promise<boolean> {
    return new Promise((resolve) => {
      // What waits for a node that is gone keeps no process alive that has ended otherwise.
      const timer = setTimeout(resolve, patience, false).unref()
      changed = () => {
        clearTimeout(timer)
        resolve(true)
      }
      if (stored !== before) changed()
    })
  }

  /** Replaces the holding `before`. False: another node was faster, and `stored` has that node's holding. */
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
      // Reads the entry itself: a node that is still starting does not receive changes yet.
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
