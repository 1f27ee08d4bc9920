import { createLocks } from '../store/lock.ts'
import { radioTree } from './access.ts'
import type { PageLogin } from './credential.ts'
import type { Credentials } from './credentials.ts'

export type TemporaryCredentials = ReturnType<typeof createTemporaryCredentials>

/** A credential for a page: it reads for an hour, and is not to be kept. */
export interface TemporaryCredential {
  username: string
  password: string
  filters: readonly string[]
  expiresAt: string
}

/** The user of a page, by the log-in that the page showed. */
type PageUser = PageLogin & { email: string }

/** Milliseconds that one lasts. */
export const temporaryMs = 60 * 60 * 1000
/** Credentials of one user at once. Each page that is open has one, and two while it takes the next. */
const perUser = 100
/** What a username has in place of the label that an operator gives. */
const label = 'page'

/**
 * Subscriber credentials of an hour, so that a page need not hold one that stays. They are credentials like others:
 * stored, listed, revoked, refused by every node from their end on, and as soon as the log-in of the page is void.
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
    /** A credential for a user. Else why not, the seconds until there is room for one more, or that the log-in is void. */
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
        // The user was removed while the store wrote. Its other credentials were ended before this one was there.
        await credentials.revoke(made.username)
        return { isVoid: true }
      }),

    /**
     * The credential for strangers: all that look at a public page of this node share it, so that they do not fill the
     * store. It has between half an hour and an hour left.
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
