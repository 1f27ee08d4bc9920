import { createLocks } from '../store/lock.ts'
import { radioTree } from './access.ts'
import type { Credentials } from './credentials.ts'

export type TemporaryCredentials = ReturnType<typeof createTemporaryCredentials>

/** A credential for a page: it reads for an hour, and is not to be kept. */
export interface TemporaryCredential {
  username: string
  password: string
  filters: readonly string[]
  expiresAt: string
}

/** Milliseconds that one lasts. */
export const temporaryMs = 60 * 60 * 1000
/** At once, of one user. Each page that is open has one, and two while it takes the next. */
const perUser = 100
/** What a username has in place of the label that an operator gives. */
const label = 'page'
/** How `hubctl credentials list` calls whoever looks at a public page. No user can have this address. */
const stranger = 'stranger'

/**
 * Subscriber credentials of an hour, so that a page need not hold one that stays. They are credentials like others:
 * stored, listed, revoked, refused by every node from their end on.
 */
export function createTemporaryCredentials(parts: {
  credentials: Pick<Credentials, 'add' | 'list' | 'revoke' | 'isValid'>
  clock: () => number
  mostPerUser?: number
}) {
  const { credentials, clock, mostPerUser = perUser } = parts
  const oneByOne = createLocks()
  let shared: TemporaryCredential | undefined

  return {
    /** One for a user; why not, or the seconds until there is room for one more. */
    forUser: (
      user: string,
      filters: readonly string[],
    ): Promise<TemporaryCredential | { error: string } | { retryAfter: number }> =>
      oneByOne.hold(user, async () => {
        const ends = of(user).map(({ revokeAt = '' }) => Date.parse(revokeAt))
        if (ends.length < mostPerUser) return add(user, filters)
        return { retryAfter: Math.max(1, Math.ceil((Math.min(...ends) - clock()) / 1000)) }
      }),

    /**
     * The one for strangers: all that look at a public page of this node share it, so that they fill no store. It has
     * between half an hour and an hour left.
     */
    forStrangers: (): Promise<TemporaryCredential | { error: string }> =>
      oneByOne.hold('', async () => {
        if (shared && lasts(shared)) return shared
        const made = await add(stranger, [radioTree])
        if (!('error' in made)) shared = made
        return made
      }),

    /** Ends those of a user that may not log in any more. */
    async end(user: string): Promise<void> {
      await Promise.all(of(user).map(({ username }) => credentials.revoke(username)))
    },
  }

  function of(user: string) {
    return credentials.list().filter((credential) => credential.user === user)
  }

  function lasts({ username, expiresAt }: TemporaryCredential): boolean {
    return credentials.isValid(username) && Date.parse(expiresAt) - clock() > temporaryMs / 2
  }

  async function add(
    user: string,
    filters: readonly string[],
  ): Promise<TemporaryCredential | { error: string }> {
    const expiresAt = new Date(clock() + temporaryMs).toISOString()
    const request = { role: 'subscriber', label, filters }
    const made = await credentials.add(request, undefined, { user, revokeAt: expiresAt })
    if ('error' in made) return made
    return {
      username: made.credential.username,
      password: made.password,
      filters: made.credential.filters,
      expiresAt,
    }
  }
}
