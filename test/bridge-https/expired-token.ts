import { createTokens } from '../../bridge-https/users/tokens.ts'
import { createUsers } from '../../bridge-https/users/users.ts'
import { createSigningKeys } from '../../certs/signing-keys.ts'
import { openEmbeddedStore } from '../../store/embedded.ts'
import { quickPasswords } from './users/quick-passwords.ts'

/** Issues a token dated `ageMs` milliseconds ago. Close the node first: this function opens its store. */
export async function expiredToken(
  storePath: string,
  { userId, issuer, ageMs }: { userId: string; issuer: string; ageMs: number },
): Promise<string> {
  const store = await openEmbeddedStore(storePath)
  const clock = () => Date.now() - ageMs
  const keys = await createSigningKeys({ store, clock, keepMs: 30 * 24 * 3600 * 1000, leadMs: 0 })
  const users = await createUsers({
    store,
    clock,
    passwords: quickPasswords(),
    knownInstitution: () => true,
  })
  const user = users.current(userId, 1)
  if (!user) throw new Error('there is no such user')
  const tokens = createTokens({ keys, users, clock, issuer: () => issuer, serviceAccount: 'push@hub' })
  const { token } = await tokens.issue(user)
  await store.close()
  return token
}
