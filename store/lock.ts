import { randomUUID } from 'node:crypto'
import type { Store } from './store.ts'

/** Runs a change when everything that was to be changed before is done, and answers with its result. */
export type InLock = <T>(change: () => Promise<T>) => Promise<T>

/** A lock that is held longer than this belongs to a node that is gone, or may as well be. */
const patienceMs = 10_000

/**
 * Changes one after another, on all nodes that share the store: whoever decides by what is there (a name that
 * is free, a token that was not used) finds what the change before left.
 */
export function createLock(store: Store, name: string, patience = patienceMs): InLock {
  const take = store.watch ? createClaims(store, store.watch, `turn ${name}`, patience) : undefined
  const here = createLocks()
  return (change) =>
    here.hold('', async () => {
      if (!take) return change()
      const release = await take()
      try {
        return await change()
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

    /** Runs the work when that of earlier calls with this key is over, and answers with its result. */
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

/** Claims queue up in the order of the commits that told of them, which is the same for all nodes. */
function createClaims(
  store: Store,
  watch: NonNullable<Store['watch']>,
  channel: string,
  patience: number,
): () => Promise<() => void> {
  const claims: string[] = []
  let moved = () => {}

  watch(channel, (change) => {
    if (!('tell' in change)) return
    const { begun, over }: Claim = JSON.parse(change.value.toString())
    if (begun !== undefined) claims.push(begun)
    if (over !== undefined) remove(over)
  })

  return async () => {
    const claim = randomUUID()
    try {
      await tell({ begun: claim })
    } catch (error) {
      end(claim) // The others may have heard of it.
      throw error
    }
    claims.push(claim)
    for (let first = claims[0]; first !== undefined && first !== claim; first = claims[0]) await pass(first)
    return () => end(claim)
  }

  /** Resolves when another claim is the first. */
  async function pass(first: string): Promise<void> {
    const isOver = await new Promise<boolean>((resolve) => {
      const timer = setTimeout(resolve, patience, false)
      moved = () => {
        if (claims[0] === first) return
        clearTimeout(timer)
        resolve(true)
      }
    })
    if (isOver || claims[0] !== first) return
    // For all nodes at once, so that they agree who is next.
    await tell({ over: first }).catch(() => undefined)
    remove(first)
  }

  function end(claim: string): void {
    remove(claim)
    // Should this not arrive, the others lose patience.
    tell({ over: claim }).catch(() => undefined)
  }

  function remove(claim: string): void {
    const index = claims.indexOf(claim)
    if (index >= 0) claims.splice(index, 1)
    moved()
  }

  function tell(claim: Claim): Promise<void> {
    return store.commit([{ tell: channel, value: JSON.stringify(claim) }])
  }
}

interface Claim {
  begun?: string
  over?: string
}
