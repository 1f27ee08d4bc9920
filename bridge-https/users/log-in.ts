import { createHash } from 'node:crypto'
import { type Origin, originOf } from '../../listener/origin.ts'
import type { Store } from '../../store/store.ts'
import type { Familiar } from './familiar.ts'
import { createLimiter, type Limiter } from './limiter.ts'
import type { HashingAsker } from './passwords.ts'
import type { KnownUser, Users } from './users.ts'

export type UserLogIn = ReturnType<typeof createUserLogIn>

export type LogInResult =
  | { user: KnownUser }
  | { refused: 'wrong' }
  /** Too many failures: the password was not checked. */
  | { refused: 'throttled'; retryAfter: number }

const windowSeconds = 60
/**
 * Maximum number of mails for an account in an hour. A network is known if the account has logged in from there.
 *
 * - `perPlace`: the limit of each known network, and of all strange networks together.
 * - `known`: the limit of all known networks together.
 */
const mailsPerHour = { perPlace: 3, known: 10 }

/** A limit, and the key under which it counts this log-in. */
type Count = readonly [limiter: Limiter, key: string]

/**
 * Log-in with e-mail address and password, throttled (design.md §9). The limits: docs/decisions, "Failed log-ins
 * over HTTPS are counted by address and network". Accounts that do not exist are throttled too: a client must see no
 * difference.
 */
export function createUserLogIn(parts: {
  /** For limits that all nodes count together. Absent: there are no other nodes. */
  store?: Store
  users: Pick<Users, 'authenticate' | 'setPassword'>
  /** The addresses from which accounts have logged in before. Absent: every address is strange. */
  familiar?: Familiar
  /** Maximum number of failures per minute from one address. Other limits depend on this number. 0: no limit. */
  failures: number
}) {
  const { store, users, familiar, failures } = parts
  const limiter = (name: string, points: number, seconds = windowSeconds) =>
    createLimiter(store, name, { points: Math.max(Math.ceil(points), 1), seconds })
  const perAddress = limiter('login-address', failures)
  const perNetwork = limiter('login-network', 5 * failures)
  const perAccountAndAddress = limiter('login-account', failures / 2)
  const perAccountAndNetwork = limiter('login-account-network', failures)
  /**
   * Failures of an account share this limit if they come from strange networks: this account has not logged in from
   * there before, even if others have. Otherwise clients in many networks could guess without end.
   */
  const perAccountOfStrangers = limiter('login-strangers', 10 * failures)
  const mails = limiter('reset-mail', mailsPerHour.perPlace, 3600)
  const mailsOfKnown = limiter('reset-mail-known', mailsPerHour.known, 3600)

  return {
    async logIn(email: string, password: string, from: string): Promise<LogInResult> {
      const origin = originOf(from)
      const account = keyOf(email)
      const counts: Count[] = [
        ...countsOf(origin),
        [perAccountAndAddress, `${account} ${origin.address}`],
        [perAccountAndNetwork, `${account} ${origin.network}`],
        ...(isKnown(account, origin) ? [] : [[perAccountOfStrangers, account] as const]),
      ]
      return attempt(counts, origin, () => users.authenticate(email, password, askerOf(origin)))
    },

    /** Sets a password by a one-time token. Wrong tokens count like wrong passwords. */
    async useReset(token: string, password: string, from: string): Promise<LogInResult> {
      const origin = originOf(from)
      return attempt(countsOf(origin), origin, () => users.setPassword(token, password, askerOf(origin)))
    },

    /** Whether a link is mailed now, or the seconds to wait after too many requests. */
    async mayAskForMail(email: string, from: string): Promise<{ retryAfter: number } | { mailNow: boolean }> {
      const origin = originOf(from)
      const asked = countsOf(origin).map(([limiter, key]): Count => [limiter, `mail ${key}`])
      const retryAfter = await take(asked)
      if (retryAfter !== undefined) return { retryAfter }
      keep(asked)
      // Networks from which this account has not logged in before have a limit of their own, so that the owner still
      // gets mails.
      const account = keyOf(email)
      const counts: Count[] = isKnown(account, origin)
        ? [
            [mails, `${account} ${origin.network}`],
            [mailsOfKnown, account],
          ]
        : [[mails, account]]
      if ((await takeAll(counts)) !== undefined) return { mailNow: false }
      tellOthers(counts)
      return { mailNow: true }
    },
  }

  function countsOf({ address, network }: Origin): Count[] {
    return [
      [perAddress, address],
      [perNetwork, network],
    ]
  }

  function isKnown(account: string, origin: Origin): boolean {
    return familiar?.knows(account, origin) ?? false
  }

  function askerOf(origin: Origin): HashingAsker {
    return { from: origin.address, familiarity: familiar?.of(origin) ?? 'strange' }
  }

  async function attempt(
    counts: readonly Count[],
    origin: Origin,
    work: () => Promise<KnownUser | undefined>,
  ): Promise<LogInResult> {
    // Points are taken before the check. Otherwise a client could try many passwords during one check.
    const retryAfter = await take(counts)
    if (retryAfter !== undefined) return { refused: 'throttled', retryAfter }
    const user = await work().catch(async (error: unknown) => {
      await giveBack(counts)
      throw error
    })
    if (!user) {
      keep(counts)
      return { refused: 'wrong' }
    }
    await giveBack(counts)
    // Not awaited: a log-in works even without the store.
    familiar?.remember(keyOf(user.email), origin).catch(() => undefined)
    return { user }
  }

  async function take(counts: readonly Count[]): Promise<number | undefined> {
    return failures === 0 ? undefined : takeAll(counts)
  }

  async function giveBack(counts: readonly Count[]): Promise<void> {
    if (failures > 0) await giveAllBack(counts)
  }

  function keep(counts: readonly Count[]): void {
    if (failures > 0) tellOthers(counts)
  }
}

/** Takes one point of each limit. If a limit has none left, takes no points, and resolves with the seconds to wait. */
async function takeAll(counts: readonly Count[]): Promise<number | undefined> {
  for (const [index, [limiter, key]] of counts.entries()) {
    const wait = await limiter.take(key)
    if (wait === undefined) continue
    await giveAllBack(counts.slice(0, index))
    return wait
  }
  return undefined
}

async function giveAllBack(counts: readonly Count[]): Promise<void> {
  for (const [limiter, key] of counts) await limiter.giveBack(key)
}

function tellOthers(counts: readonly Count[]): void {
  for (const [limiter, key] of counts) limiter.tellOthers(key)
}

/** A key of fixed length, so that long addresses do not fill the memory. */
function keyOf(email: string): string {
  return createHash('sha256').update(email.toLowerCase()).digest('base64url')
}
