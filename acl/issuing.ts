import { eventKinds } from '../event/kind.ts'
import { matchesRadioTopic, radioTopic } from '../event/topic.ts'
import type { Change } from '../store/store.ts'
import {
  type Credential,
  endingAt,
  hasEnded,
  type StoredCredential,
  shown,
  type Temporary,
} from './credential.ts'
import { createPassword } from './password.ts'
import type { Permissions } from './permissions.ts'
import type { StoredCredentials } from './stored-credentials.ts'
import { temporaryUsername, type Usernames } from './usernames.ts'

/** A new credential with its password, which the hub does not store. */
export interface IssuedCredential {
  credential: Credential
  password: string
  /** Why the credential looks like a mistake. The credential works all the same. */
  warning?: string
}

/** A new credential that takes the place of `replaces`. */
export interface RotatedCredential extends IssuedCredential {
  replaces: string
  /** When the replaced credential ends, ISO 8601. Absent: an operator has to revoke it. */
  revokeAt?: string
}

/** Makes credentials and stores them. The condition `held` makes a commit fail if this node has lost the lock. */
export function createIssuing(parts: {
  collection: Pick<StoredCredentials, 'get' | 'put'>
  usernames: Usernames
  clock: () => number
  knownInstitution: ((institutionId: string) => boolean) | undefined
  /** Schedules the revocation of a stored credential, if it has an end. */
  schedule: (credential: Credential) => void
}) {
  const { collection, usernames, clock, knownInstitution, schedule } = parts

  return {
    issue,

    async replace(
      username: string,
      revokeAfterMs: number | undefined,
      held: readonly Change[],
      first?: (next: Credential, revokeAt: string | undefined) => Promise<void>,
    ): Promise<RotatedCredential | { error: string }> {
      const old = collection.get(username)
      if (old === undefined || hasEnded(old, clock()))
        return { error: `there is no credential ${JSON.stringify(username)}` }
      if (old.user !== undefined) return { error: 'it is temporary: its page takes another one by itself' }
      // Another operator has rotated the credential already: refuse a second successor.
      if (old.revokeAt !== undefined) {
        return { error: `it has been rotated already, and ends at ${old.revokeAt}: rotate its successor` }
      }
      const ending = revokeAfterMs === undefined ? undefined : endingAt(old, clock() + revokeAfterMs)
      const revokeAt = ending?.revokeAt
      const issued = await issue(old, held, async (next) => first?.(next, revokeAt), { ending })
      return { ...issued, replaces: username, ...(revokeAt !== undefined && { revokeAt }) }
    },
  }

  /**
   * Makes a credential and stores it. `ending`: in a rotation, the replaced credential, with the time of its end set.
   * One commit stores both credentials.
   */
  async function issue(
    { role, label, institutions, filters, classes, clientIdPrefix }: Permissions,
    held: readonly Change[],
    first?: (credential: Credential) => Promise<void>,
    { temporary, ending }: { temporary?: Temporary | undefined; ending?: StoredCredential | undefined } = {},
  ): Promise<IssuedCredential> {
    const now = clock()
    const { password, salt, hash } = createPassword()
    const { username, changes } = temporary
      ? { username: temporaryUsername(label), changes: [] }
      : usernames.next({ role, label, institutions, filters, classes }, now)
    const createdAt = new Date(now).toISOString()
    const stored = {
      username,
      role,
      label,
      institutions,
      filters,
      classes,
      ...(clientIdPrefix !== undefined && { clientIdPrefix }),
      createdAt,
      salt,
      hash,
      ...temporary,
    }
    const credential = shown(stored)
    await first?.(credential)
    const credentials = ending ? [stored, ending] : [stored]
    await collection.put(credentials, [...held, ...changes])
    for (const each of credentials) schedule(each)
    const warning = warnAbout(credential)
    return { credential, password, ...(warning !== undefined && { warning }) }
  }

  function warnAbout({ institutions, filters }: Credential): string | undefined {
    const unknown = institutions.filter((id) => knownInstitution?.(id) === false)
    if (unknown.length > 0)
      return `the livestream feed does not know ${unknown.join(', ')}: every event will be blocked until it does`
    const vain = filters.filter((filter) => !matchesRadioTopic(filter))
    if (vain.length === 0) return undefined
    const topics = eventKinds.map((kind) => radioTopic('{livestreamId}', kind))
    return `nothing is ever sent to ${vain.join(', ')}: topics are ${topics.join(', ')}`
  }
}
