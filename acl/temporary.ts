import { createLocks } from '../store/lock.ts'
import { radioTree } from './access.ts'
import type { PageLogin } from './credential.ts'
import type { Credentials } from './credentials.ts'

export type TemporaryCredentials = ReturnType<typeof createTemporaryCredentials>

/** A credential with which a page can subscribe for an hour. */
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
/** Maximum number of temporary credentials of one user. An open page has one or two. */
const perUser = 100
/** The label of all temporary credentials. */
const label = 'page'

/** Makes subscriber credentials for pages. A credential ends after an hour, or when its log-in is void. */
export function createTemporaryCredentials(parts: {
  credentials: Pick<Credentials, 'add' | 'ofUser' | 'revoke' | 'isValid'>
  /** Whether the log-in of a page is still valid. */
  isCurrent: (login: PageLogin) => boolean
  clock: () => number
  mostPerUser?: number
}) {
  const { credentials, isCurrent, clock, mostPerUser = perUser } = parts
  const oneByOne = createLocks()
  let shared: TemporaryCredential | undefined

  return {
    /** Makes a credential for a user. `retryAfter`: the user has too many; seconds until one ends. */
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
        // The log-in became void while the credential was being stored. `endOfUser` may have run before it could find
        // the credential.
        await credentials.revoke(made.username)
        return { isVoid: true }
      }),

    /**
     * The credential for visitors without a log-in, valid for another 30 to 60 minutes. All visitors of a node share
     * one: separate credentials would fill the store.
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
