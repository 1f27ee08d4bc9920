import { createHash } from 'node:crypto'
import type { Change, Store } from '../store/store.ts'

export type Repetitions = Awaited<ReturnType<typeof createRepetitions>>

/** How long a repetition is recognised, milliseconds: longer than a publisher goes on repeating unasked. */
const rememberMs = 3_600_000
/** At most so many marks are remembered. */
const maxRemembered = 100_000
/** So many old ones go with each new one: more than come. */
const forgottenAtOnce = 2
const prefix = 'work-seen/'

/** What is to be stored, and done when it is. */
export interface Work {
  changes: readonly Change[]
  show: () => void
}

/**
 * One event on its way to the store. Everything that is asked of it must be in one commit; then exactly one of
 * `stored` and `failed` is called.
 */
export interface Repetition {
  /** Of the event that came first. */
  id: string
  /**
   * What must be stored so that this work is done once for the event: nothing when it has been done. A repetition
   * that arrives while the first is being stored shares its changes, because nobody knows yet whether that succeeds.
   */
  once(scope: string, make: () => Work): readonly Change[]
  /** What must be stored so that the event is recognised. */
  marks(): readonly Change[]
  stored(): void
  failed(): void
}

/** A mark that is being stored: the first commit that succeeds makes it so. */
interface Claim extends Work {
  /** Of the event. */
  id: string
  /** How many events wait for it. */
  pending: number
}

/**
 * Remembers which events came in, and what was done for them, so that a publisher that repeats itself (no
 * acknowledgement came, a retransmission after a crash) gets the same id again and does not cause the same work
 * twice. Stored with the event.
 */
export async function createRepetitions(parts: { store: Store; clock: () => number }) {
  const { store, clock } = parts
  /** By fingerprint, or fingerprint and scope. */
  const seen = new Map<string, Mark>()
  const inOrder = createLine()
  const claims = new Map<string, Claim>()
  /** Keys of marks that are forgotten, and still stored. */
  let left: string[] = []
  const found: Mark[] = []
  for await (const [key, value] of store.range(prefix)) found.push(readMark(key.slice(prefix.length), value))
  for (const mark of found.sort((a, b) => a.at - b.at)) see(mark)

  store.watch?.(prefix, (change) => {
    if ('put' in change) see(readMark(change.put.slice(prefix.length), change.value))
    else if ('del' in change) seen.delete(change.del.slice(prefix.length))
  })

  /** Begins with an event; `newId` makes its id should it be the first. */
  return (fingerprint: string, newId: () => string): Repetition => {
    const id = remembered(fingerprint)?.id ?? claims.get(fingerprint)?.id ?? newId()
    const own: [key: string, claim: Claim][] = []
    let forgotten: readonly string[] = []
    claim(fingerprint, () => ({ changes: [], show() {} }))

    return {
      id,
      once: (scope, make) => claim(`${fingerprint}/${scope}`, make)?.changes ?? [],
      marks() {
        forgotten = forget(own.length * forgottenAtOnce)
        const value = `${clock()} ${id}`
        return [
          ...forgotten.map((key) => ({ del: prefix + key })),
          ...own.map(([key]) => ({ put: prefix + key, value })),
        ]
      },
      stored() {
        for (const [key, claim] of own) {
          if (claims.get(key) !== claim) continue
          claims.delete(key)
          see({ key, at: clock(), id })
          claim.show()
        }
      },
      failed() {
        left.push(...forgotten)
        for (const [key, claim] of own) {
          claim.pending--
          if (claim.pending === 0 && claims.get(key) === claim) claims.delete(key)
        }
      },
    }

    /** Undefined: it has been done for this event. */
    function claim(key: string, make: () => Work): Claim | undefined {
      if (remembered(key)?.id === id) return undefined
      const waiting = claims.get(key)
      const claim = waiting?.id === id ? waiting : { ...make(), id, pending: 0 }
      claims.set(key, claim)
      claim.pending++
      own.push([key, claim])
      return claim
    }
  }

  function see(mark: Mark): void {
    seen.set(mark.key, mark)
    inOrder.add(mark)
  }

  /** A time ahead comes from a clock that was set back. */
  function remembered(key: string): Mark | undefined {
    const mark = seen.get(key)
    return mark && Math.abs(clock() - mark.at) < rememberMs ? mark : undefined
  }

  /** Forgets at most so many marks that are too old, or too many; their keys. */
  function forget(count: number): string[] {
    const keys: string[] = []
    if (count > 0 && left.length > 0) {
      // Not one that has been seen once more.
      keys.push(...left.filter((key) => !seen.has(key) && !claims.has(key)))
      left = []
    }
    while (keys.length < count) {
      const mark = inOrder.first()
      if (!mark) break
      const isCurrent = seen.get(mark.key) === mark
      if (isCurrent) {
        if (remembered(mark.key) && seen.size < maxRemembered) break
        // What is done once more will be stored with a new time.
        if (claims.has(mark.key)) break
        seen.delete(mark.key)
        keys.push(mark.key)
      }
      inOrder.drop()
    }
    return keys
  }
}

/** Marks in the order in which they were seen. A map would look for its first entry behind all that were deleted. */
function createLine() {
  let marks: Mark[] = []
  let first = 0
  return {
    add: (mark: Mark) => void marks.push(mark),
    first: (): Mark | undefined => marks[first],
    drop(): void {
      first++
      if (first < 1_024 || first * 2 < marks.length) return
      marks = marks.slice(first)
      first = 0
    },
  }
}

/**
 * The same for the same bytes of the same institution, published as the same kind: over HTTPS it is the URL
 * that tells what plays next from what plays now.
 */
export function fingerprintOf(kind: string, institutionId: string, payload: Buffer): string {
  const hash = createHash('sha256').update(kind).update('\n').update(institutionId).update('\n')
  return hash.update(payload).digest('base64url').slice(0, fingerprintLength)
}

/** 132 bits: nobody finds two events with the same. */
const fingerprintLength = 22

interface Mark {
  key: string
  /** When the event came first, milliseconds since the epoch. */
  at: number
  id: string
}

/** As stored: the time and the id. */
function readMark(key: string, value: Buffer): Mark {
  const [at, ...id] = value.toString().split(' ')
  return { key, at: Number(at), id: id.join(' ') }
}
