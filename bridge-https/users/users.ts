import { randomUUID } from 'node:crypto'
import { caughtUp } from '../../store/caught-up.ts'
import { createLock } from '../../store/lock.ts'
import type { Change, Store } from '../../store/store.ts'
import { type HashingAsker, hashOfToken, newToken, type Passwords } from './passwords.ts'
import {
  hasEnded,
  type KnownUser,
  openStoredUsers,
  type ResetChannel,
  type StoredUser,
} from './stored-users.ts'
import { normalEmail, type User, type UserRequest, usualPermissions } from './user.ts'

export type { KnownUser } from './stored-users.ts'

export type Users = Awaited<ReturnType<typeof createUsers>>

/** A one-time token to choose a user's password, stored as a hash. */
export interface ResetToken {
  user: User
  token: string
  expiresAt: string
}

const hourMs = 3600 * 1000
/** Maximum number of ended log-ins remembered per user. One more ends all log-ins of the user. */
const mostEndedLogins = 100
/** Lifetime of a token to choose a password, milliseconds. */
const resetLifetimeMs: Record<ResetChannel, number> = { operator: 72 * hourMs, mail: hourMs }

/** The users of the HTTPS API, in the store and in memory (design.md §9). */
export async function createUsers(parts: {
  store: Store
  passwords: Passwords
  /** Wall clock, milliseconds since the epoch. */
  clock: () => number
  /** Whether the livestream feed knows the institution. */
  knownInstitution: (institutionId: string) => boolean
}) {
  const { store, passwords, clock, knownInstitution } = parts
  const users = await openStoredUsers(store)
  const { byEmail } = users
  // One change at a time. A new password must not bring back a removed user.
  const inLock = await createLock(store, 'user')

  return {
    /**
     * Makes a user, and a token to choose a password. Calls `first` before the user is stored. If `first` rejects, no
     * user is stored.
     */
    async add(
      request: UserRequest,
      first?: (user: User) => Promise<void>,
    ): Promise<(ResetToken & { warning?: string }) | { error: string }> {
      return inLock(async (held) => {
        const user = newUser(request, clock())
        if (byEmail(user.email)) return { error: `there is already a user ${user.email}` }
        await first?.(shown(user))
        const reset = await storeReset(user, 'operator', held)
        const { institutionId, permissions } = user
        // An operator sees those of all, so the institution may be one that has no livestreams.
        const isOperator = permissions.includes('operate') && !permissions.includes('publish')
        if (isOperator || knownInstitution(institutionId)) return reset
        return { ...reset, warning: `the livestream feed does not know ${institutionId}` }
      })
    },

    /** All users, sorted by e-mail address. */
    list: (): (User & { hasPassword: boolean })[] =>
      [...users.values()]
        .map((stored) => ({ ...shown(stored), hasPassword: stored.passwordHash !== undefined }))
        .sort((a, b) => (a.email < b.email ? -1 : 1)),

    /** Removes a user and voids the tokens. Returns the user's id. Undefined: no such user. */
    remove: (email: string): Promise<string | undefined> =>
      inLock(async (held) => {
        const stored = byEmail(email)
        return stored && (await users.delete(stored, held)) ? stored.userId : undefined
      }),

    /** A token to choose a new password. Undefined: there is no such user. */
    issueReset: (email: string, channel: ResetChannel): Promise<ResetToken | undefined> =>
      inLock(async (held) => {
        const stored = byEmail(email)
        return stored && storeReset(stored, channel, held)
      }),

    /** Uses up a token and sets the password. Undefined: the token is not valid. */
    async setPassword(token: string, password: string, asker?: HashingAsker): Promise<KnownUser | undefined> {
      const hash = hashOfToken(token)
      const find = () => byReset(users.values(), hash, clock())
      // An early look saves the slow hashing. The lookup under the lock decides: a token works once.
      if (!find() && !((await caughtUp(store)) && find())) return undefined
      const passwordHash = await passwords.hash(password, asker)
      return inLock(async (held) => {
        const found = find()
        if (!found) return undefined
        const changed = withPassword(found, passwordHash)
        await users.put(changed, held)
        users.loggedOut(changed)
        return known(changed)
      })
    },

    /** The user behind e-mail address and password. An unknown address costs as much time as a wrong password. */
    async authenticate(
      email: string,
      password: string,
      asker?: HashingAsker,
    ): Promise<KnownUser | undefined> {
      // The user may have chosen the password at another node, a moment ago.
      await caughtUp(store)
      const stored = byEmail(email)
      const fits = await passwords.verify(password, stored?.passwordHash, asker)
      // Refuse a user that was removed, or whose generation changed, during the check.
      if (!fits || !stored || users.get(stored.userId)?.generation !== stored.generation) return undefined
      return known(stored)
    },

    /** Ends a log-in and voids its tokens, which expire before `until` (milliseconds since the epoch). */
    endLogin: ({ userId, generation, loginId }: KnownUser, until: number): Promise<void> =>
      inLock(async (held) => {
        const stored = users.get(userId)
        if (stored?.generation !== generation || loginId === undefined || hasEnded(stored, loginId)) return
        const changed = withEnded(stored, loginId, { now: clock(), until })
        await users.put(changed, held)
        users.loggedOut(changed)
      }),

    /** Calls the listener with the id of each user of whom a log-in becomes void. */
    onLoggedOut: users.onLoggedOut,

    find(email: string): User | undefined {
      const stored = byEmail(email)
      return stored && shown(stored)
    },

    /** The user of a token that another node may have made a moment ago. Undefined: the token is void. */
    async ofToken(
      ...claims: [userId: string, generation: number, loginId?: string]
    ): Promise<KnownUser | undefined> {
      return current(...claims) ?? ((await caughtUp(store)) ? current(...claims) : undefined)
    },

    current,
  }

  /** The user of a log-in as this node knows it. Undefined: the log-in is void. */
  function current(userId: string, generation: number, loginId?: string): KnownUser | undefined {
    const stored = users.get(userId)
    if (stored?.generation !== generation) return undefined
    if (loginId === undefined) return known(stored)
    return hasEnded(stored, loginId) ? undefined : { ...known(stored), loginId }
  }

  async function storeReset(
    user: StoredUser,
    channel: ResetChannel,
    held: readonly Change[],
  ): Promise<ResetToken> {
    const { changed, token, expiresAt } = withReset(user, channel, clock())
    await users.put(changed, held)
    return { user: shown(user), token, expiresAt }
  }
}

function newUser({ email, institution, permissions = [] }: UserRequest, now: number): StoredUser {
  return {
    email: normalEmail(email),
    institutionId: institution,
    permissions: permissions.length > 0 ? [...new Set(permissions)] : usualPermissions,
    userId: randomUUID(),
    emailVerified: false,
    createdAt: new Date(now).toISOString(),
    generation: 0,
    resets: [],
  }
}

/**
 * Makes a token, which replaces the last token of the same channel. The token of the other channel stays valid. A mail
 * must not void an operator's token.
 */
function withReset(
  user: StoredUser,
  channel: ResetChannel,
  now: number,
): { changed: StoredUser; token: string; expiresAt: string } {
  const token = newToken()
  const expiresAt = new Date(now + resetLifetimeMs[channel]).toISOString()
  const others = user.resets.filter((reset) => reset.channel !== channel)
  const resets = [...others, { channel, hash: hashOfToken(token), expiresAt }]
  return { changed: { ...user, resets }, token, expiresAt }
}

interface FoundReset {
  stored: StoredUser
  channel: ResetChannel
}

function byReset(users: Iterable<StoredUser>, hash: string, now: number): FoundReset | undefined {
  for (const stored of users) {
    const reset = stored.resets.find((one) => one.hash === hash)
    if (reset && Date.parse(reset.expiresAt) > now) return { stored, channel: reset.channel }
  }
  return undefined
}

/** Sets the password, which makes every token of the user void. */
function withPassword({ stored, channel }: FoundReset, passwordHash: string): StoredUser {
  return {
    ...stored,
    passwordHash,
    resets: [],
    endedLogins: [],
    generation: stored.generation + 1,
    emailVerified: stored.emailVerified || channel === 'mail',
  }
}

/** Ends this log-in, and forgets ended log-ins whose tokens have expired. */
function withEnded(
  user: StoredUser,
  loginId: string,
  { now, until }: { now: number; until: number },
): StoredUser {
  const remembered = user.endedLogins?.filter(({ expiresAt }) => Date.parse(expiresAt) > now) ?? []
  if (remembered.length >= mostEndedLogins)
    return { ...user, generation: user.generation + 1, endedLogins: [] }
  const expiresAt = new Date(until).toISOString()
  return { ...user, endedLogins: [...remembered, { id: loginId, expiresAt }] }
}

function known(stored: StoredUser): KnownUser {
  return { ...shown(stored), generation: stored.generation }
}

function shown(stored: StoredUser): User {
  const { generation: _g, passwordHash: _h, resets: _r, endedLogins: _e, ...user } = stored
  return user
}
