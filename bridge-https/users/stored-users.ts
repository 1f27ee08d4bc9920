import { createCollection } from '../../store/collection.ts'
import { storeKeys } from '../../store/keys.ts'
import type { Change, Store } from '../../store/store.ts'
import { normalEmail, type User } from './user.ts'

/** A user whose password or token was checked. */
export interface KnownUser extends User {
  /** Rises with a new password, or when all log-ins end at once. A token of an earlier generation is void. */
  generation: number
  /**
   * The log-in that the token belongs to. Undefined: the user is just logging in, and has no token yet. Or the log-in
   * began under 3.0.0-beta.1.
   */
  loginId?: string | undefined
}

/** The way by which a token to choose a password reaches the user. */
export type ResetChannel = 'operator' | 'mail'

export interface StoredUser extends Omit<KnownUser, 'loginId'> {
  passwordHash?: string
  /** Log-ins that were ended before their tokens expired. */
  endedLogins?: { id: string; expiresAt: string }[]
  resets: { channel: ResetChannel; hash: string; expiresAt: string }[]
}

/** The users in the store, found by id and by e-mail address. */
export async function openStoredUsers(store: Store) {
  const collection = await createCollection<StoredUser>(store, storeKeys.user)
  const idByEmail = new Map([...collection.values()].map(({ email, userId }) => [email, userId]))
  const listeners: ((userId: string) => void)[] = []
  collection.onChanged((userId, before, after) => {
    if (before && (before.generation !== after?.generation || hasEndedAnother(before, after)))
      loggedOut(before)
    if (before && idByEmail.get(before.email) === userId) idByEmail.delete(before.email)
    if (after) idByEmail.set(after.email, userId)
  })

  return {
    get: collection.get,
    values: collection.values,
    byEmail: (email: string): StoredUser | undefined =>
      collection.get(idByEmail.get(normalEmail(email)) ?? ''),

    async put(user: StoredUser, held: readonly Change[]): Promise<void> {
      await collection.put(user.userId, user, held)
      idByEmail.set(user.email, user.userId)
    },

    /** False: the user was removed already. */
    async delete(user: StoredUser, held: readonly Change[]): Promise<boolean> {
      if (!(await collection.delete(user.userId, held))) return false
      idByEmail.delete(user.email)
      loggedOut(user)
      return true
    },

    loggedOut,
    /** Calls the listener with the id of each user who is removed or loses a log-in. */
    onLoggedOut: (listener: (userId: string) => void): void => void listeners.push(listener),
  }

  function loggedOut({ userId }: User): void {
    for (const listener of listeners) listener(userId)
  }
}

function hasEndedAnother(before: StoredUser, after: StoredUser): boolean {
  return after.endedLogins?.some(({ id }) => !hasEnded(before, id)) ?? false
}

/** Whether the user has ended this log-in. */
export function hasEnded({ endedLogins = [] }: StoredUser, loginId: string): boolean {
  return endedLogins.some(({ id }) => id === loginId)
}
