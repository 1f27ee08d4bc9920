import type { InLock } from '../store/lock.ts'
import { untilDone } from '../store/until-done.ts'
import type { Credential, StoredCredential } from './credential.ts'
import type { StoredCredentials } from './stored-credentials.ts'

/** Between two attempts to note and store a revocation that is due, milliseconds. */
const usualRetryMs = 10_000

/** Revokes credentials when their time has come, or the log-in of their page is void. */
export function createRevocations(parts: {
  collection: Pick<StoredCredentials, 'get' | 'delete'>
  /** Whether a credential is refused, although it is stored. */
  isOver: (credential: StoredCredential) => boolean
  /** One change of the credentials at a time. */
  inTurn: InLock
  clock: () => number
  /** Told at once, even if the store fails afterwards: the credential is refused from now on. */
  ended: (username: string) => void
  /** Writes the audit entry, before the revocation is stored. */
  noteDue: ((username: string) => Promise<void>) | undefined
  /** Told when the revocation could not be noted or stored. */
  onStoreFailure: ((username: string, error: unknown) => void) | undefined
  retryMs: number | undefined
}) {
  const { collection, isOver, inTurn, clock, ended, noteDue, onStoreFailure, retryMs = usualRetryMs } = parts
  /** Revocations that the audit log has, and the store does not yet. */
  const noted = new Set<string>()
  let isClosed = false
  const timers = createTimers({ clock, due: (username) => void revokeDue(username) })

  return {
    /** Sets the time of a credential, if it has one. */
    schedule({ username, revokeAt }: Credential): void {
      if (revokeAt !== undefined) timers.set(username, Date.parse(revokeAt))
    },
    /** Revokes those that are over, without a timer. Never rejects. */
    async revokeOver(credentials: Iterable<StoredCredential>): Promise<void> {
      await Promise.all([...credentials].filter(isOver).map(({ username }) => revokeDue(username)))
    },

    /** Forgets the time of a credential that has ended already. */
    drop: timers.clear,

    close(): void {
      isClosed = true
      timers.close()
    },
  }

  /** Never rejects. */
  async function revokeDue(username: string): Promise<void> {
    // A later rotation may have set another time; another node may have been first.
    if (!isDue(username)) return
    ended(username)
    await untilDone(() => inTurn((held) => revoke(username, held)), {
      failed(error) {
        if (isDue(username)) onStoreFailure?.(username, error)
      },
      isWanted: () => !isClosed && isDue(username),
      pauseMs: retryMs,
    })
  }

  async function revoke(username: string, held: Parameters<typeof collection.delete>[1]): Promise<void> {
    if (!isDue(username)) return
    // The end of a temporary one was known when it began.
    const isNoted = noted.has(username) || collection.get(username)?.user !== undefined
    if (!isNoted) await noteDue?.(username)
    noted.add(username)
    await collection.delete(username, held)
    noted.delete(username)
  }

  function isDue(username: string): boolean {
    const stored = collection.get(username)
    return stored !== undefined && isOver(stored)
  }
}

/** Timers by username. They never keep the process alive, and long ones are taken in steps. */
function createTimers(parts: { clock: () => number; due: (username: string) => void }) {
  const { clock, due } = parts
  // setTimeout overflows at 2^31 ms. Each step compares with the clock anew, so that a clock that is set is noticed.
  const longestStepMs = 60 * 60 * 1000
  const timers = new Map<string, NodeJS.Timeout>()
  let closed = false

  function set(username: string, time: number): void {
    clear(username)
    if (closed) return
    const delay = Math.min(Math.max(time - clock(), 0), longestStepMs)
    const timer = setTimeout(() => (time <= clock() ? due(username) : set(username, time)), delay)
    timers.set(username, timer.unref())
  }

  function clear(username: string): void {
    clearTimeout(timers.get(username))
    timers.delete(username)
  }

  return {
    set,
    clear,
    close(): void {
      closed = true
      for (const timer of timers.values()) clearTimeout(timer)
      timers.clear()
    },
  }
}
