import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { createCollection } from '../store/collection.ts'
import { createLock } from '../store/lock.ts'
import type { Change, Store } from '../store/store.ts'
import {
  type CredentialRequest,
  checkCredentialRequest,
  maxRevokeAfterMs,
  type Permissions,
} from './permissions.ts'
import type { Principal } from './principal.ts'
import { createUsernames } from './usernames.ts'

export type Credentials = Awaited<ReturnType<typeof createCredentials>>

/** A credential as people see it: never the password, its hash or its salt. */
export interface Credential extends Permissions {
  username: string
  createdAt: string
  /** From this instant on it is refused (rotation with `--revoke-after`, and whatever is temporary). */
  revokeAt?: string
  /** Temporary: made for this user, see `acl/temporary.ts`. */
  user?: string
}

/** Whose a temporary credential is, and when it ends. */
export type Temporary = Required<Pick<Credential, 'user' | 'revokeAt'>>

/** A credential just made, with the password that is shown once and kept nowhere. */
export interface IssuedCredential {
  credential: Credential
  password: string
  /** It works, but something about it looks like a mistake. */
  warning?: string
}

/** A new credential that takes the place of `replaces`. */
interface RotatedCredential extends IssuedCredential {
  replaces: string
  /** When the replaced credential stops working; absent: when somebody revokes it. */
  revokeAt?: string
}

/** Between two attempts to note and store a revocation that is due, milliseconds. */
const patienceMs = 10_000

interface StoredCredential extends Credential {
  salt: string
  hash: string
}

/**
 * The MQTT credentials (design.md §5): made here, kept in the store, mirrored in memory so that ten
 * thousand reconnecting clients are answered without waiting for anything.
 */
export async function createCredentials(parts: {
  store: Store
  /** Wall clock, milliseconds since the epoch. */
  clock: () => number
  /** Whether the livestream feed knows the institution; without it nobody is warned. */
  knownInstitution?: (institutionId: string) => boolean
  /** Writes the audit entry of a scheduled revocation, before that is stored. */
  noteDue?: (username: string) => Promise<void>
  /** Told when a scheduled revocation could not be noted or stored; it takes effect all the same. */
  onStoreFailure?: (username: string, error: unknown) => void
  retryMs?: number
}) {
  const { store, clock, knownInstitution, noteDue, onStoreFailure, retryMs = patienceMs } = parts
  const collection = await createCollection<StoredCredential>(store, 'credential')
  const listeners = new Set<(username: string) => void>()
  /** Scheduled revocations that the audit log has, and the store does not yet. */
  const noted = new Set<string>()
  const usernames = await createUsernames(store, (username) => collection.get(username) !== undefined)
  // A rotation must not bring back what a revocation just removed.
  const inTurn = await createLock(store, 'credential')
  const schedule = createSchedule({ clock, due: (username) => void revokeDue(username) })
  for (const credential of collection.values()) scheduleRevocation(credential)
  collection.onChanged((username, _before, after) => {
    usernames.given(username)
    if (after) scheduleRevocation(after)
    else ended(username)
  })

  return {
    /**
     * Makes a credential, or says what is wrong with the request. `first` is called with it before it is stored;
     * when that rejects there is none.
     */
    async add(
      request: CredentialRequest,
      first?: (credential: Credential) => Promise<void>,
      temporary?: Temporary,
    ): Promise<IssuedCredential | { error: string }> {
      const permissions = checkCredentialRequest(request)
      if ('error' in permissions) return permissions
      return inTurn((held) => issue(permissions, held, first, temporary))
    },

    /**
     * The principal behind username and password, or undefined. An unknown username costs as much
     * time as a wrong password, so that nobody learns which usernames exist.
     */
    authenticate(username: string, password: Buffer | string | undefined): Principal | undefined {
      const stored = collection.get(username)
      const matches = passwordMatches(password ?? '', stored ?? nobody)
      if (stored === undefined || !matches || hasEnded(stored)) return undefined
      return principalOf(stored)
    },

    /** Whether a credential of that name exists and has not ended. */
    isValid(username: string): boolean {
      const stored = collection.get(username)
      return stored !== undefined && !hasEnded(stored)
    },

    /** All credentials, by username. */
    list(): Credential[] {
      return [...collection.values()].map(shown).sort((a, b) => (a.username < b.username ? -1 : 1))
    },

    /** The credential of that name, or undefined. */
    get(username: string): Credential | undefined {
      const stored = collection.get(username)
      return stored && shown(stored)
    },

    /**
     * Makes a new credential with the same permissions and label. The old one keeps working for
     * `revokeAfterMs`, or until somebody revokes it (service.md §5 Rotation). `first` as for `add`.
     */
    async rotate(
      username: string,
      options: { revokeAfterMs?: number } = {},
      first?: (next: Credential, revokeAt: string | undefined) => Promise<void>,
    ): Promise<RotatedCredential | { error: string }> {
      const { revokeAfterMs } = options
      if (revokeAfterMs !== undefined && !(revokeAfterMs > 0 && revokeAfterMs <= maxRevokeAfterMs)) {
        return { error: 'revokeAfter must be more than nothing and at most 3650 days' }
      }
      return inTurn((held) => replace(username, revokeAfterMs, held, first))
    },

    /** Ends a credential now. False when there is none of that name. */
    revoke(username: string): Promise<boolean> {
      return inTurn(async (held) => {
        const existed = await collection.delete(username, held)
        if (existed) ended(username)
        return existed
      })
    },

    /** Calls the listener with every credential that ends, so that its connections are closed. */
    onRevoked(listener: (username: string) => void): () => void {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },

    /** Stops the scheduled revocations of this process; they fire when the next one starts. */
    close(): void {
      schedule.close()
    },
  }

  async function issue(
    permissions: Permissions,
    held: readonly Change[],
    first?: (credential: Credential) => Promise<void>,
    temporary?: Temporary,
  ): Promise<IssuedCredential> {
    const now = clock()
    const password = randomBytes(32).toString('base64url')
    const salt = randomBytes(16).toString('base64url')
    const { username, changes } = usernames.next(permissions, now)
    const credential: Credential = {
      username,
      role: permissions.role,
      label: permissions.label,
      institutions: permissions.institutions,
      filters: permissions.filters,
      classes: permissions.classes,
      createdAt: new Date(now).toISOString(),
      ...temporary,
    }
    const hash = digest(salt, password).toString('base64url')
    await first?.(credential)
    await collection.put(username, { ...credential, salt, hash }, [...held, ...changes])
    scheduleRevocation(credential)
    const warning = warnAbout(permissions.institutions)
    return { credential, password, ...(warning === undefined ? {} : { warning }) }
  }

  async function replace(
    username: string,
    revokeAfterMs: number | undefined,
    held: readonly Change[],
    first?: (next: Credential, revokeAt: string | undefined) => Promise<void>,
  ): Promise<RotatedCredential | { error: string }> {
    const old = collection.get(username)
    if (old === undefined || hasEnded(old))
      return { error: `there is no credential ${JSON.stringify(username)}` }
    if (old.user !== undefined) return { error: 'it is temporary: its page takes another one by itself' }
    const ending = revokeAfterMs === undefined ? old : endingAt(old, clock() + revokeAfterMs)
    const issued = await issue(old, held, (next) => first?.(next, ending.revokeAt) ?? Promise.resolve())
    if (ending !== old) {
      await collection.put(username, ending, held)
      scheduleRevocation(ending)
    }
    return {
      ...issued,
      replaces: username,
      ...(ending.revokeAt === undefined ? {} : { revokeAt: ending.revokeAt }),
    }
  }

  function warnAbout(institutions: readonly string[]): string | undefined {
    const unknown = institutions.filter((id) => knownInstitution?.(id) === false)
    if (unknown.length === 0) return undefined
    return `the livestream feed does not know ${unknown.join(', ')}: every event will be blocked until it does`
  }

  function scheduleRevocation(credential: Credential): void {
    if (credential.revokeAt !== undefined) schedule.set(credential.username, Date.parse(credential.revokeAt))
  }

  async function revokeDue(username: string): Promise<void> {
    // A later rotation may have set another time; another node may have been first.
    if (!isDue(username)) return
    // It is refused from now on, noted and stored or not.
    ended(username)
    try {
      await inTurn(async (held) => {
        if (!isDue(username)) return
        // The end of a temporary one was known when it began.
        const isNoted = noted.has(username) || collection.get(username)?.user !== undefined
        if (!isNoted) await noteDue?.(username)
        noted.add(username)
        await collection.delete(username, held)
        noted.delete(username)
      })
    } catch (error) {
      if (!isDue(username)) return
      onStoreFailure?.(username, error)
      schedule.set(username, clock() + retryMs)
    }
  }

  function ended(username: string): void {
    schedule.clear(username)
    for (const listener of listeners) listener(username)
  }

  function isDue(username: string): boolean {
    const stored = collection.get(username)
    return stored !== undefined && hasEnded(stored)
  }

  function hasEnded(credential: Credential): boolean {
    return credential.revokeAt !== undefined && Date.parse(credential.revokeAt) <= clock()
  }
}

function endingAt(credential: StoredCredential, time: number): StoredCredential {
  return { ...credential, revokeAt: new Date(time).toISOString() }
}

function principalOf(stored: StoredCredential): Principal {
  const { role, username, institutions, classes, filters, user } = stored
  if (role === 'publisher') return { role, username, institutions, classes }
  return { role, username, filters, ...(user !== undefined && { temporaryOf: user }) }
}

function shown(stored: StoredCredential): Credential {
  const { salt: _salt, hash: _hash, ...credential } = stored
  return credential
}

/** With 256 random bits in the password a slow hash would add nothing (design.md §5). */
function digest(salt: string, password: Buffer | string): Buffer {
  return createHash('sha256').update(salt).update(password).digest()
}

function passwordMatches(password: Buffer | string, stored: { salt: string; hash: string }): boolean {
  const expected = Buffer.from(stored.hash, 'base64url')
  const actual = digest(stored.salt, password)
  return expected.length === actual.length && timingSafeEqual(expected, actual)
}

/** Stands in for an unknown user, so that the same work is done. Nobody knows a password for it. */
const nobody = {
  salt: randomBytes(16).toString('base64url'),
  hash: randomBytes(32).toString('base64url'),
}

/** Timers by username. They never keep the process alive, and long ones are taken in steps. */
function createSchedule(parts: { clock: () => number; due: (username: string) => void }) {
  const { clock, due } = parts
  // setTimeout overflows at 2^31 ms; shorter steps also follow a wall clock that is set.
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
