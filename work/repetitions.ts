import { createHash } from 'node:crypto'
import type { Change, Store } from '../store/store.ts'

/** How long a repetition is recognised, milliseconds: longer than a publisher goes on repeating unasked. */
const rememberMs = 3_600_000
/** At most so many are remembered. */
const maxRemembered = 100_000
const prefix = 'work-seen/'

/** Something done once: several may wait for it to be stored, the first that succeeds makes it so. */
export interface Claim {
  changes: readonly Change[]
  show: () => void
  /** How many wait. */
  pending: number
}

/**
 * Remembers what was done for which event, so that a publisher that repeats itself (no acknowledgement came, a
 * retransmission after a crash) does not cause the same work twice. Stored with the work.
 */
export async function createRepetitions(parts: { store: Store; clock: () => number }) {
  const { store, clock } = parts
  /** When it was first seen, oldest first. */
  const seen = new Map<string, number>()
  const claims = new Map<string, Claim>()
  for await (const [key, value] of store.range(prefix)) {
    seen.set(key.slice(prefix.length), Number(value.toString()))
  }
  const inOrder = [...seen].sort(([, a], [, b]) => a - b)
  seen.clear()
  for (const [key, at] of inOrder) seen.set(key, at)

  store.watch?.(prefix, (change) => {
    if ('put' in change) seen.set(change.put.slice(prefix.length), Number(change.value.toString()))
    else if ('del' in change) seen.delete(change.del.slice(prefix.length))
  })

  return {
    /**
     * What must be stored for this key: nothing when that has been done. A repetition that arrives while the
     * first is being stored shares its changes, because nobody knows yet whether that succeeds.
     */
    claim(key: string, make: () => Pick<Claim, 'changes' | 'show'>): Claim | undefined {
      const at = seen.get(key)
      if (at !== undefined && isRemembered(at)) return undefined
      const waiting = claims.get(key)
      if (waiting) {
        waiting.pending++
        return waiting
      }
      const { changes, show } = make()
      const mark: Change = { put: prefix + key, value: String(clock()) }
      const claim: Claim = { changes: [...changes, mark], show, pending: 1 }
      claims.set(key, claim)
      return claim
    },

    stored(key: string, claim: Claim): void {
      if (claims.get(key) !== claim) return
      claims.delete(key)
      seen.delete(key) // so that the order stays that of time
      seen.set(key, clock())
      claim.show()
    },

    failed(key: string, claim: Claim): void {
      claim.pending--
      if (claim.pending === 0 && claims.get(key) === claim) claims.delete(key)
    },

    /** Forgets what is too old, and removes it from the store. */
    async forget(): Promise<void> {
      const expired: string[] = []
      for (const [key, at] of seen) {
        if (isRemembered(at) && seen.size - expired.length <= maxRemembered) continue
        // What is being done once more will be stored with a new time.
        if (!claims.has(key)) expired.push(key)
      }
      await store.commit(expired.map((key) => ({ del: prefix + key })))
      for (const key of expired) seen.delete(key)
    },
  }

  /** A time ahead comes from a clock that was set back. */
  function isRemembered(at: number): boolean {
    return Math.abs(clock() - at) < rememberMs
  }
}

/**
 * The same for the same bytes of the same institution, published as the same kind: over HTTPS it is the URL
 * that tells what plays next from what plays now.
 */
export function fingerprintOf(kind: string, institutionId: string, payload: Buffer): string {
  const hash = createHash('sha256').update(kind).update('\n').update(institutionId).update('\n')
  return hash.update(payload).digest('base64url')
}

/** Key of one thing that is done for an event. */
export function repetitionKey(fingerprint: string, scope: string): string {
  return createHash('sha256').update(fingerprint).update('\n').update(scope).digest('base64url').slice(0, 22)
}
