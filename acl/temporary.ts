import { createLocks } from '../store/lock.ts'
import { radioTree } from './access.ts'
import type { PageLogin } from './credential.ts'
import type { Credentials } from './credentials.ts'

export type TemporaryCredentials = ReturnType<typeof createTemporaryCredentials>

/** A credential with which a page may subscribe for an hour. The page need not keep it. */
export interface TemporaryCredential {
  username: string
  password: string
  filters: readonly string[]
  expiresAt: string
}

/** The user of a page, with the log-in that the page presented. */
type PageUser = PageLogin & { email: string }

/** How long a temporary credential is valid, milliseconds. */
export const temporaryMs = 60 * 60 * 1000
/**
 * Maximum number of temporary credentials of one user at once. An open page has one, and two while it renews its
 * credential.
 */
const perUser = 100
/** The label in the usernames of temporary credentials. For other credentials, an operator chooses the label. */
const label = 'page'

/**
 * Makes subscriber credentials that are valid for an hour, so that a page need not have a permanent credential. They
 * are stored, listed and revoked like all others. Every node refuses them after the hour, or when their log-in is void.
 */
export function createTemporaryCredentials(parts: {
  credentials: Pick<Credentials, 'add' | 'ofUser' | 'revoke' | 'isValid'>
  isCurrent: (login: PageLogin) => boolean
  clock: () => number
  mostPerUser?: number
}) {
  const { credentials, isCurrent, clock, mostPerUser = perUser } = parts
  const oneByOne = createLocks()
  let shared: TemporaryCredential | undefined

  return {
    /** Makes a credential for a user. If the user has too many, returns in `retryAfter` the seconds until one ends. */
    forUser: (
      user: PageUser,
      filters: readonly string[],
    ): Promise<TemporaryCredential | { error: string } | { retryAfter: number } | { isVoid: true }> =>
      oneByOne.hold(user.userId, async () => {
        if (!isCurrent(user)) return { isVoid: true }
        const ends = credentials.ofUser(user.userId).map(({ revokeAt = '' }) => Date.parse(revokeAt))
        if (ends.length >= mostPerUser) {
          return { retryAfter: Math.max(1, Math.ceil((Math.min(...ends) - clock()) / 1000)) }
        }
        const made = await add(user, filters)
        if ('error' in made || credentials.isValid(made.username)) return made
        // The log-in became void while this credential was being stored, so `endOfUser` did not find this credential.
        await credentials.revoke(made.username)
        return { isVoid: true }
      }),

    /**
     * The credential for visitors of a public page who have no log-in. All of them share one credential per node:
     * separate credentials would fill the store. The credential is valid for another 30 to 60 minutes.
     */
    forStrangers: (stranger: PageUser): Promise<TemporaryCredential | { error: string }> =>
      oneByOne.hold(stranger.userId, async () => {
        if (shared && lasts(shared)) return shared
        const made = await add(stranger, [radioTree])
        if (!('error' in made)) shared = made
        return made
      }),
  }

  function lasts({ username, expiresAt }: TemporaryCredential): boolean {
    return credentials.isValid(username) && Date.parse(expiresAt) - clock() > temporaryMs / 2
  }

  async function add(
    { userId, generation, loginId, email }: PageUser,
    filters: readonly string[],
  ): Promise<TemporaryCredential | { error: string }> {
    const expiresAt = new Date(clock() + temporaryMs).toISOString()
    const request = { role: 'subscriber', label, filters }
    const temporary = { user: email, revokeAt: expiresAt, login: { userId, generation, loginId } }
    const made = await credentials.add(request, undefined, temporary)
    if ('error' in made) return made
    return {
      username: made.credential.username,
      password: made.password,
      filters: made.credential.filters,
      expiresAt,
    }
  }
}
