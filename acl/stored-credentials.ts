import { createCollection } from '../store/collection.ts'
import { storeKeys } from '../store/keys.ts'
import type { Change, Store } from '../store/store.ts'
import type { StoredCredential } from './credential.ts'

export type StoredCredentials = Awaited<ReturnType<typeof openStoredCredentials>>

/** Opens the stored credentials. Temporary ones are also found by their user. */
export async function openStoredCredentials(store: Store) {
  const collection = await createCollection<StoredCredential>(store, storeKeys.credential)
  const ofUsers = new Map<string, Set<string>>()
  for (const credential of collection.values()) note(credential)
  collection.onChanged((_username, before, after) => {
    if (before) forget(before)
    if (after) note(after)
  })

  return {
    get: collection.get,
    values: collection.values,
    onChanged: collection.onChanged,

    /** Commits the credentials and the changes `alongside`, all or none. */
    async put(credentials: readonly StoredCredential[], alongside: readonly Change[]): Promise<void> {
      await collection.change(
        credentials.map((each) => [each.username, each]),
        alongside,
      )
      credentials.forEach(note)
    },

    /** Resolves with false if there is no credential of that name. */
    async delete(username: string, alongside: readonly Change[]): Promise<boolean> {
      const before = collection.get(username)
      const existed = await collection.delete(username, alongside)
      if (before && existed) forget(before)
      return existed
    },

    /** The temporary credentials of a user. */
    ofUser: (userId: string): StoredCredential[] =>
      [...(ofUsers.get(userId) ?? [])].flatMap((username) => collection.get(username) ?? []),
  }

  function note({ username, login }: StoredCredential): void {
    if (!login) return
    const usernames = ofUsers.get(login.userId) ?? new Set()
    ofUsers.set(login.userId, usernames.add(username))
  }

  function forget({ username, login }: StoredCredential): void {
    const usernames = login && ofUsers.get(login.userId)
    if (!login || !usernames?.delete(username)) return
    if (usernames.size === 0) ofUsers.delete(login.userId)
  }
}
