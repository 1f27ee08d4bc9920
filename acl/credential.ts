import type { Permissions } from './permissions.ts'
import type { Principal } from './principal.ts'

/** A credential as people see it: never the password, its hash or its salt. */
export interface Credential extends Permissions {
  username: string
  createdAt: string
  /** Instant when the credential ends. Set by a rotation with `--revoke-after`, and in temporary credentials. */
  revokeAt?: string
  /** Only of a temporary credential: the user that it was made for, see `acl/temporary.ts`. */
  user?: string
}

/** The log-in by which a page got a credential. Void once the user is removed, has another password, or logged out. */
export interface PageLogin {
  userId: string
  /** Counts the passwords of the user. */
  generation: number
  /** Undefined: the log-in began under an earlier release, which gave it no id. */
  loginId?: string | undefined
}

/** The user of a temporary credential, its end, and the log-in of its page. */
export type Temporary = Required<Pick<Credential, 'user' | 'revokeAt'>> & { login: PageLogin }

/** A credential as it is stored. */
export interface StoredCredential extends Credential {
  salt: string
  hash: string
  /** Only of a temporary credential: the log-in of its page. */
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

/** The principal that a client becomes when it logs in with a credential. */
export function principalOf(credential: Credential): Principal {
  const { role, username, institutions, classes, filters, user } = credential
  if (role === 'publisher') return { role, username, institutions, classes }
  return { role, username, filters, ...(user !== undefined && { temporaryOf: user }) }
}

/** The part of a stored credential that people see. */
export function shown(stored: StoredCredential): Credential {
  const { salt: _salt, hash: _hash, login: _login, ...credential } = stored
  return credential
}
