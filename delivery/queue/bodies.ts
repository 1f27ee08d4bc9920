import type { Store } from '../../store/store.ts'
import type { WorkItem } from './work-item.ts'
import { readBody } from './work-records.ts'

/** Bodies that are delivered soon after they were stored need not be read again. */
const maxCachedBytes = 16 * 1024 * 1024

/** The bodies that items share: each is stored once, and removed with the last item that refers to it. */
export function createBodies(store: Store) {
  const holders = new Map<number, number>()
  const cache = new Map<number, Buffer>()
  let cachedBytes = 0
  const unused: number[] = []
  /** Bodies nothing refers to as far as this node knows: whether another removes them shows later. */
  const suspects = new Set<number>()

  return {
    /** Keeps a body at hand that has just been stored. */
    keep(sequence: number, body: Buffer): void {
      if (cache.has(sequence)) return
      cache.set(sequence, body)
      cachedBytes += body.length
      for (const [oldest] of cache) {
        if (cachedBytes <= maxCachedBytes) break
        uncache(oldest)
      }
    },

    async read(sequence: number): Promise<Buffer | undefined> {
      return cache.get(sequence) ?? readBody(store, sequence)
    },

    /** These items refer to their bodies from now on. */
    hold(items: readonly WorkItem[]): void {
      for (const { body } of items) holders.set(body, (holders.get(body) ?? 0) + 1)
    },

    /** These items are gone, and that is stored. */
    release(items: readonly WorkItem[]): void {
      for (const { body } of items) {
        const left = (holders.get(body) ?? 0) - 1
        if (left > 0) holders.set(body, left)
        else {
          holders.delete(body)
          uncache(body)
          unused.push(body)
        }
      }
    },

    /** The same, done by another node, which removes the body where it was the last. */
    releaseElsewhere(items: readonly WorkItem[]): void {
      for (const { body } of items) {
        const left = (holders.get(body) ?? 0) - 1
        if (left > 0) holders.set(body, left)
        else {
          holders.delete(body)
          suspects.add(body)
        }
      }
    },

    /** Another node has removed a body. */
    removed(sequence: number): void {
      suspects.delete(sequence)
      uncache(sequence)
    },

    suspect(stored: readonly number[]): void {
      for (const sequence of stored) if (!holders.has(sequence)) suspects.add(sequence)
    },

    /** What was suspected before and is still there is unused: two nodes let go of it at the same moment. */
    confirmSuspects(isRemover: boolean): void {
      for (const sequence of suspects) if (isRemover && !holders.has(sequence)) unused.push(sequence)
      suspects.clear()
    },

    /** Bodies that nothing refers to any more: to be removed with the next commit. */
    takeUnused: (): number[] => unused.splice(0),
    putBack(bodies: readonly number[]): void {
      for (const body of bodies) unused.push(body)
    },

    /** Of the stored ones those that nothing refers to are unused. */
    findOrphans(stored: readonly number[]): void {
      for (const sequence of stored) if (!holders.has(sequence)) unused.push(sequence)
    },
  }

  function uncache(sequence: number): void {
    cachedBytes -= cache.get(sequence)?.length ?? 0
    cache.delete(sequence)
  }
}
