import { createLock } from '../store/lock.ts'
import type { Store } from '../store/store.ts'
import {
  type Credential,
  hasEnded,
  isVoid,
  type PageLogin,
  principalOf,
  readerOf,
  type StoredCredential,
  shown,
  type Temporary,
} from './credential.ts'
import { createIssuing, type IssuedCredential, type RotatedCredential } from './issuing.ts'
import { passwordMatches } from './password.ts'
import { type CredentialRequest, checkCredentialRequest, maxRevokeAfterMs } from './permissions.ts'
import type { Principal, Reader } from './principal.ts'
import { createRevocations } from './revocations.ts'
import { openStoredCredentials } from './stored-credentials.ts'
import { createUsernames } from './usernames.ts'

export type { Credential } from './credential.ts'
export type { IssuedCredential } from './issuing.ts'
export type Credentials = Awaited<ReturnType<typeof createCredentials>>

interface CredentialsParts {
  store: Store
  /** Wall clock, milliseconds since the epoch. */
  clock: () => number
  /** Whether a log-in is still valid. */
  isCurrent: (login: PageLogin) => boolean
  /** Whether the livestream feed lists the institution. Undefined: every institution counts as listed. */
  knownInstitution?: (institutionId: string) => boolean
  /** Writes the audit entry of a scheduled revocation, before the revocation is stored. */
  noteDue?: (username: string) => Promise<void>
  /** Called when a revocation or its audit entry could not be written. The credential is refused anyway. */
  onStoreFailure?: (username: string, error: unknown) => void
  retryMs?: number
}

/**
 * Makes and checks credentials (design.md §5). Log-ins read a copy in memory, because ten thousand clients can
 * reconnect at once.
 */
export async function createCredentials(parts: CredentialsParts) {
  const { store, clock, isCurrent, knownInstitution } = parts
  const collection = await openStoredCredentials(store)
  const isExpiredOrVoid = (stored: StoredCredential) => hasEnded(stored, clock()) || isVoid(stored, isCurrent)
  const listeners: ((username: string) => void)[] = []
  const usernames = await createUsernames(store, (username) => collection.get(username) !== undefined)
  // One change at a time: a rotation must not bring back a credential that a revocation just removed.
  const inLock = await createLock(store, 'credential')
  const revocations = createRevocations({ ...parts, collection, isExpiredOrVoid, inLock, ended })
  const { schedule } = revocations
  const issuing = createIssuing({ collection, usernames, clock, knownInstitution, schedule })
  for (const credential of collection.values()) schedule(credential)
  collection.onChanged((username, before, after) => {
    // Notes the name, so that no other credential gets it. Temporary credentials need no note, because their names are
    // random.
    if ((before ?? after)?.user === undefined) usernames.given(username)
    if (after) schedule(after)
    else ended(username)
  })

  return {
    /**
     * Makes a credential, or says what is wrong with the request. Calls `first` before storing the credential: if
     * `first` rejects, nothing is stored.
     */
    async add(
      request: CredentialRequest,
      first?: (credential: Credential) => Promise<void>,
      temporary?: Temporary,
    ): Promise<IssuedCredential | { error: string }> {
      const permissions = checkCredentialRequest(request)
      if ('error' in permissions) return permissions
      return inLock((held) => issuing.issue(permissions, held, first, { temporary }))
    },

    /** The principal that logs in over MQTT with username and password, or undefined. */
    authenticate(username: string, password: Buffer | string | undefined): Principal | undefined {
      const stored = matching(username, password)
      return stored && principalOf(stored)
    },

    /** The principal whose certificate names this credential, or undefined. Temporary credentials have none. */
    certified(username: string): Principal | undefined {
      const stored = collection.get(username)
      return stored?.user !== undefined || !stored || isExpiredOrVoid(stored)
        ? undefined
        : principalOf(stored)
    },

    /** The reader that asks over HTTPS with username and password, or undefined. */
    authenticateReader(username: string, password: Buffer | string | undefined): Reader | undefined {
      const stored = matching(username, password)
      return stored && readerOf(stored)
    },

    /** Whether a credential of that name exists and is still accepted. */
    isValid(username: string): boolean {
      const stored = collection.get(username)
      return stored !== undefined && !isExpiredOrVoid(stored)
    },

    /** All credentials, sorted by username. */
    list(): Credential[] {
      return [...collection.values()].map(shown).sort((a, b) => (a.username < b.username ? -1 : 1))
    },

    /** The credential of that name, or undefined. */
    get(username: string): Credential | undefined {
      const stored = collection.get(username)
      return stored && shown(stored)
    },

    /**
     * Makes a new credential with the same permissions and label (service.md §5 Rotation). The old credential works for
     * another `revokeAfterMs`, or until an operator revokes it. `first`: as in `add`.
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
      return inLock((held) => issuing.replace(username, revokeAfterMs, held, first))
    },

    /** Removes a credential at once. False: there is no credential of that name. */
    revoke(username: string): Promise<boolean> {
      return inLock(async (held) => {
        const existed = await collection.delete(username, held)
        if (existed) ended(username)
        return existed
      })
    },

    /** The temporary credentials of a user. */
    ofUser: (userId: string): Credential[] => collection.ofUser(userId).map(shown),

    /** Revokes a user's temporary credentials whose log-in is void, and closes their connections. */
    endOfUser: (userId: string): Promise<void> => revocations.revokeExpired(collection.ofUser(userId)),

    /** Revokes all credentials that have ended, or whose log-in is void. Resolves when the store has that. */
    revokeExpired: (): Promise<void> => revocations.revokeExpired(collection.values()),

    /** Calls `listener` with the username of each credential that ends. */
    onRevoked: (listener: (username: string) => void): void => void listeners.push(listener),

    /** Cancels the scheduled revocations. The next start makes up for them (`revokeExpired`). */
    close(): void {
      revocations.close()
    },
  }

  /**
   * The valid credential with this username and password, or undefined. An unknown username takes as long as a wrong
   * password: the time must not reveal usernames.
   */
  function matching(username: string, password: Buffer | string | undefined): StoredCredential | undefined {
    const stored = collection.get(username)
    const matches = passwordMatches(password ?? '', stored)
    return stored === undefined || !matches || isExpiredOrVoid(stored) ? undefined : stored
  }

  function ended(username: string): void {
    revocations.drop(username)
    for (const listener of listeners) listener(username)
  }
}
