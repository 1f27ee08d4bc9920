import { createHash } from 'node:crypto'
import ipaddr from 'ipaddr.js'
import type { Store } from '../store/store.ts'
import { createLimiter } from './limiter.ts'
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
  /** Where other nodes hear of failures; absent: there are none. */
  store?: Store
  users: Pick<Users, 'authenticate' | 'setPassword'>
  /** Failures per address and minute, half as many per account; 0: no limit. */
  failures: number
}) {
  const { store, users, failures } = parts
  const window = { seconds: windowSeconds }
  const perAddress = createLimiter(store, 'login-address', { points: Math.max(failures, 1), ...window })
  const perAccount = createLimiter(store, 'login-account', {
    points: Math.max(Math.ceil(failures / 2), 1),
    ...window,
  })
  const mails = createLimiter(store, 'reset-mail', { points: mailsPerHour, seconds: 3600 })

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
      if (!user) return wrong(address, account)
      await giveBack(address, account)
      return { user }
    },

    /** Sets a password by a one-time token; wrong tokens count like wrong passwords. */
    async useReset(token: string, password: string, from: string): Promise<LogInResult> {
      const address = networkOf(from)
      const retryAfter = await take(address)
      if (retryAfter !== undefined) return { refused: 'throttled', retryAfter }
      const user = await users.setPassword(token, password)
      if (!user) return wrong(address)
      await giveBack(address)
      return { user }
    },

    /** Whether a link may be mailed; seconds to wait when the address has asked for too many. */
    async mayAskForMail(email: string, from: string): Promise<{ retryAfter: number } | { mailNow: boolean }> {
      const [asker, account] = [`mail ${networkOf(from)}`, keyOf(email)]
      const retryAfter = await take(asker)
      if (retryAfter !== undefined) return { retryAfter }
      perAddress.tellOthers(asker)
      if ((await mails.take(account)) !== undefined) return { mailNow: false }
      mails.tellOthers(account)
      return { mailNow: true }
    },
  }

  async function take(address: string, account?: string): Promise<number | undefined> {
    if (failures === 0) return undefined
    const wait = await perAddress.take(address)
    if (wait !== undefined || account === undefined) return wait
    const accountWait = await perAccount.take(account)
    if (accountWait !== undefined) await perAddress.giveBack(address)
    return accountWait
  }

  async function giveBack(address: string, account?: string): Promise<void> {
    if (failures === 0) return
    await perAddress.giveBack(address)
    if (account !== undefined) await perAccount.giveBack(account)
  }

  function wrong(address: string, account?: string): LogInResult {
    if (failures > 0) {
      perAddress.tellOthers(address)
      if (account !== undefined) perAccount.tellOthers(account)
    }
    return { refused: 'wrong' }
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
