import { createHash } from 'node:crypto'
import ipaddr from 'ipaddr.js'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import type { User } from './user.ts'
import type { Users } from './users.ts'

export type LogIn = ReturnType<typeof createLogIn>

export type LogInResult =
  | { user: User }
  | { refused: 'wrong' }
  /** Too many failures: nothing was looked at. */
  | { refused: 'throttled'; retryAfter: number }

const windowSeconds = 60
/** Mails per account and hour. More would be a nuisance made by strangers. */
const mailsPerHour = 3

/**
 * Log-in with e-mail address and password, throttled per address it comes from and per account
 * (design.md §9). Accounts that do not exist are throttled all the same: nothing tells them apart.
 */
export function createLogIn(parts: {
  users: Pick<Users, 'authenticate' | 'setPassword'>
  /** Failures per address and minute, half as many per account; 0: no limit. */
  failures: number
}) {
  const { users, failures } = parts
  const perAddress = new RateLimiterMemory({ points: Math.max(failures, 1), duration: windowSeconds })
  const perAccount = new RateLimiterMemory({
    points: Math.max(Math.ceil(failures / 2), 1),
    duration: windowSeconds,
  })
  const mails = new RateLimiterMemory({ points: mailsPerHour, duration: 3600 })

  return {
    async logIn(email: string, password: string, from: string): Promise<LogInResult> {
      const address = networkOf(from)
      const account = keyOf(email)
      // Taken before the password is checked and given back after a success: otherwise as many could be
      // tried as fit into the time one check takes.
      const retryAfter = await take(address, account)
      if (retryAfter !== undefined) return { refused: 'throttled', retryAfter }
      const user = await users.authenticate(email, password).catch(async (error: unknown) => {
        await giveBack(address, account)
        throw error
      })
      if (!user) return { refused: 'wrong' }
      await giveBack(address, account)
      return { user }
    },

    /** Sets a password by a one-time token; wrong tokens count like wrong passwords. */
    async useReset(token: string, password: string, from: string): Promise<LogInResult> {
      const address = networkOf(from)
      const retryAfter = await take(address)
      if (retryAfter !== undefined) return { refused: 'throttled', retryAfter }
      const user = await users.setPassword(token, password)
      if (!user) return { refused: 'wrong' }
      await giveBack(address)
      return { user }
    },

    /** Whether a link may be mailed; seconds to wait when the address has asked for too many. */
    async mayAskForMail(email: string, from: string): Promise<{ retryAfter: number } | { mailNow: boolean }> {
      const retryAfter = await take(`mail ${networkOf(from)}`)
      if (retryAfter !== undefined) return { retryAfter }
      return { mailNow: (await consume(mails, keyOf(email))) === undefined }
    },
  }

  async function take(address: string, account?: string): Promise<number | undefined> {
    if (failures === 0) return undefined
    const wait = await consume(perAddress, address)
    if (wait !== undefined || account === undefined) return wait
    const accountWait = await consume(perAccount, account)
    if (accountWait !== undefined) await perAddress.reward(address)
    return accountWait
  }

  async function giveBack(address: string, account?: string): Promise<void> {
    if (failures === 0) return
    await perAddress.reward(address)
    if (account !== undefined) await perAccount.reward(account)
  }
}

/** Undefined when there was a point left, else the seconds until there is one. */
async function consume(limiter: RateLimiterMemory, key: string): Promise<number | undefined> {
  try {
    await limiter.consume(key)
    return undefined
  } catch (state) {
    if (!(state instanceof RateLimiterRes)) throw state
    return Math.max(1, Math.ceil(state.msBeforeNext / 1000))
  }
}

/** Whom the limits count: an IPv4 address, or an IPv6 network, because that is what one subscriber line has. */
function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address
  // `process` turns an IPv4 address in IPv6 clothes into what it is.
  const parsed = ipaddr.process(address)
  return parsed instanceof ipaddr.IPv6 ? `${parsed.parts.slice(0, 4).join(':')}::/64` : parsed.toString()
}

/** Of fixed length, so that nobody fills the memory with addresses. */
function keyOf(email: string): string {
  return createHash('sha256').update(email.toLowerCase()).digest('base64url')
}
