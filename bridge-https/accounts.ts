import type { PageLogin } from '../acl/credential.ts'
import { createSigningKeys } from '../certs/signing-keys.ts'
import type { Store } from '../store/store.ts'
import { createFamiliar } from './users/familiar.ts'
import type { Passwords } from './users/passwords.ts'
import { isStranger } from './users/strangers.ts'
import { createTokens, lifetimes } from './users/tokens.ts'
import { createUsers } from './users/users.ts'

/** Opens the accounts of the HTTPS API: users, tokens, signing keys, and the addresses that users logged in from. */
export async function openAccounts(parts: {
  store: Store
  passwords: Passwords
  clock: () => number
  knownInstitution: (institutionId: string) => boolean
  publicUrl: () => string
  serviceAccount: Parameters<typeof createTokens>[0]['serviceAccount']
  /** From the publication of a signing key to the first token that it signs, milliseconds (`HUB_KEY_LEAD`). */
  keyLeadMs: number
  /** Visitors may look at the on-air page without a log-in (`HUB_PUBLIC_PAGE`). */
  isPagePublic: boolean
}) {
  const { store, clock, publicUrl, serviceAccount, keyLeadMs, isPagePublic } = parts
  const keys = await createSigningKeys({
    store,
    clock,
    keepMs: lifetimes.refresh * 1000,
    leadMs: keyLeadMs,
  })
  const users = await createUsers(parts)
  const familiar = await createFamiliar({ store, clock })
  const tokens = createTokens({ keys, users, clock, issuer: publicUrl, serviceAccount })
  return { keys, users, familiar, tokens, isCurrent }

  /** Whether the log-in of a page is still valid. */
  function isCurrent({ userId, generation, loginId }: PageLogin): boolean {
    return isStranger({ userId }) ? isPagePublic : users.current(userId, generation, loginId) !== undefined
  }
}
