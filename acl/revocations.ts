import type { InLock } from '../store/lock.ts'
import { untilDone } from '../store/until-done.ts'
import type { Credential, StoredCredential } from './credential.ts'
import type { StoredCredentials } from './stored-credentials.ts'

/** Pause before the node tries again to store a revocation, milliseconds. */
const usualRetryMs = 10_000

/** Revokes credentials at the time `revokeAt`, or when the log-in of their page is void. */
export function createRevocations(parts: {
  collection: Pick<StoredCredentials, 'get' | 'delete'>
  isExpiredOrVoid: (credential: StoredCredential) => boolean
  /** Runs one change of the credentials at a time. */
  inLock: InLock
  clock: () => number
  /** Called before the revocation is stored: connections must end even if the store fails. */
  ended: (username: string) => void
  /** Writes the audit entry, before the revocation is stored. */
  noteDue?: (username: string) => Promise<void>
  /** Called when the audit entry or the revocation could not be written. */
  onStoreFailure?: (username: string, error: unknown) => void
  retryMs?: number
}) {
  const { collection, isExpiredOrVoid, inLock, clock, ended, noteDue, onStoreFailure } = parts
  const { retryMs = usualRetryMs } = parts
  /** Usernames whose revocation is in the audit log, but not in the store yet. */
  const noted = new Set<string>()
  let isClosed = false
  const timers = createTimers({ clock, due: (username) => void revokeDue(username) })

  return {
    /** Schedules the revocation of a credential, if it has an end. */
    schedule({ username, revokeAt }: Credential): void {
      if (revokeAt !== undefined) timers.set(username, Date.parse(revokeAt))
    },
    /** Revokes those of the credentials that are expired or void. Never rejects. */
    async revokeExpired(credentials: Iterable<StoredCredential>): Promise<void> {
      await Promise.all([...credentials].filter(isExpiredOrVoid).map(({ username }) => revokeDue(username)))
    },

    /** Cancels the scheduled revocation of a credential that has ended already. */
    drop: timers.clear,

    close(): void {
      isClosed = true
      timers.close()
    },
  }

  /** Ends a credential if it is due. Retries the write until the store takes it. Never rejects. */
  async function revokeDue(username: string): Promise<void> {
    if (!isDue(username)) return
    ended(username)
    await untilDone(() => inLock((held) => revoke(username, held)), {
      failed(error) {
        if (isDue(username)) onStoreFailure?.(username, error)
      },
      isWanted: () => !isClosed && isDue(username),
      pauseMs: retryMs,
    })
  }

  async function revoke(username: string, held: Parameters<typeof collection.delete>[1]): Promise<void> {
    if (!isDue(username)) return
    // A temporary credential needs no audit entry for its revocation: the hub made it without an entry, too.
    const isNoted = noted.has(username) || collection.get(username)?.user !== undefined
    if (!isNoted) await noteDue?.(username)
    noted.add(username)
    await collection.delete(username, held)
    noted.delete(username)
  }

  function isDue(username: string): boolean {
    const stored = collection.get(username)
    return stored !== undefined && isExpiredOrVoid(stored)
  }
}

/** Timers by username, which do not keep the process alive. */
function createTimers(parts: { clock: () => number; due: (username: string) => void }) {
  const { clock, due } = parts
  // `setTimeout` overflows at 2^31 ms, so a long wait has several steps. Short steps also notice when the clock is
  // changed.
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
