import { randomUUID } from 'node:crypto'
import type { Store } from './store.ts'

/** Runs a change when everything that was to be changed before is done, and answers with its result. */
export type InTurn = <T>(change: () => Promise<T>) => Promise<T>

/** A turn that takes longer than this belongs to a node that is gone, or may as well be. */
const patienceMs = 10_000

/**
 * Changes one after another, on all nodes that share the store: whoever decides by what is there (a name that
 * is free, a token that was not used) finds what the change before left.
 */
export function createTurns(store: Store, name: string, patience = patienceMs): InTurn {
  const take = store.watch ? createClaims(store, store.watch, `turn ${name}`, patience) : undefined
  let last: Promise<unknown> = Promise.resolve()
  return (change) => {
    const result = last.then(async () => {
      if (!take) return change()
      const end = await take()
      try {
        return await change()
      } finally {
        end()
      }
    })
    last = result.catch(() => undefined)
    return result
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
