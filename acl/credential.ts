import type { Permissions } from './permissions.ts'
import type { Principal, Reader } from './principal.ts'

/** A credential as operators see it: without password, hash and salt. */
export interface Credential extends Permissions {
  username: string
  createdAt: string
  /** End of a temporary credential, or of one that was rotated with `--revoke-after`, ISO 8601. */
  revokeAt?: string
  /** Only in a temporary credential (`acl/temporary.ts`): the e-mail address of its user. */
  user?: string
}

/** The log-in with which a page got its credential. The user's log-out, removal or new password voids the log-in. */
export interface PageLogin {
  userId: string
  /** The user's generation at the log-in. A new password raises the generation. */
  generation: number
  /** Undefined: the log-in began under 3.0.0-beta.1, which gave it no id. */
  loginId?: string | undefined
}

/** The user of a temporary credential, its end, and the log-in of its page. */
export type Temporary = Required<Pick<Credential, 'user' | 'revokeAt'>> & { login: PageLogin }

/** A credential as it is stored. */
export interface StoredCredential extends Credential {
  salt: string
  hash: string
  /** Only in a temporary credential: the log-in of its page. */
  login?: PageLogin
}

export function hasEnded({ revokeAt }: Credential, now: number): boolean {
  return revokeAt !== undefined && Date.parse(revokeAt) <= now
}

/** Whether this is a temporary credential whose log-in is void. */
export function isVoid({ user, login }: StoredCredential, isCurrent: (login: PageLogin) => boolean): boolean {
  return user !== undefined && !(login && isCurrent(login))
}

/** A copy of the credential that ends at `time`, milliseconds since the epoch. */
export function endingAt(credential: StoredCredential, time: number): StoredCredential {
  return { ...credential, revokeAt: new Date(time).toISOString() }
}

/** The principal that a client becomes when it logs in over MQTT. Undefined: the credential is one for HTTPS. */
export function principalOf(credential: Credential): Principal | undefined {
  const { role, username, institutions, classes, filters, user, clientIdPrefix } = credential
  if (role === 'reader') return undefined
  const ids = clientIdPrefix === undefined ? {} : { clientIdPrefix }
  if (role === 'publisher') return { role, username, institutions, classes, ...ids }
  return { role, username, filters, ...ids, ...(user !== undefined && { temporaryOf: user }) }
}

/** The reader that asks over HTTPS with a credential. Undefined: the credential is one for MQTT. */
export function readerOf({ role, username, filters }: Credential): Reader | undefined {
  return role === 'reader' ? { username, filters } : undefined
}

/** The part of a stored credential that operators see. */
export function shown(stored: StoredCredential): Credential {
  const { salt: _salt, hash: _hash, login: _login, ...credential } = stored
  return credential
}
