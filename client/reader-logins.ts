import type { Http, HttpResponse } from './http.ts'
import type { NoLogin, ReaderLogin, SubscriptionParts } from './keep-subscribed.ts'
import { isRecord } from './kind.ts'
import { newClientId } from './link.ts'
import { loginTextProblem } from './login-text.ts'

/** Where the logins of a subscriber come from. */
export type Logins = Pick<SubscriptionParts, 'clientId' | 'logIn' | 'loginRefused'>

const minuteMs = 60_000
/** A kept login must be valid for at least this time, milliseconds. */
const leastMs = 5 * minuteMs
/** How long a login is taken to last where the clocks leave no better answer, milliseconds. */
const assumedMs = 30 * minuteMs

/** The user name and password that the caller gave. */
export function givenLogin(login: ReaderLogin): Logins {
  return {
    clientId: newClientId,
    logIn: async () => login,
    loginRefused: () => false,
  }
}

/** The logins that a node with a public page gives everybody for an hour (docs/https.md, "Pages"). */
export function hourlyLogins(http: Http, hub: string): Logins {
  let kept: (ReaderLogin & { expiresAt: number }) | undefined
  return {
    // The hub takes these logins with no other client ids.
    clientId: () => `page-${crypto.randomUUID()}`,
    async logIn(isFresh) {
      if (!isFresh && kept && kept.expiresAt - Date.now() > leastMs) return kept
      try {
        const response = await http('POST', `${hub}/auth/mqtt`)
        const login = loginIn(response)
        kept = login ?? kept
        return login ?? whyNone(hub, response)
      } catch (error) {
        return noLogin(`${hub} cannot be reached: ${error}`)
      }
    },
    loginRefused() {
      kept = undefined
      return true
    },
  }
}

function loginIn({ status, body, date }: HttpResponse) {
  if (status !== 200 || !isRecord(body)) return undefined
  const { username, password, expiresAt } = body
  if (typeof username !== 'string' || typeof password !== 'string') return undefined
  if (loginTextProblem(username) || loginTextProblem(password)) return undefined
  const left = (typeof expiresAt === 'string' ? Date.parse(expiresAt) : Number.NaN) - (date ?? Date.now())
  // The clock here may be hours off, and a page of another origin cannot read that of the hub.
  const isPlausible = left > 2 * leastMs && left <= 61 * minuteMs
  return { username, password, expiresAt: Date.now() + (isPlausible ? left : assumedMs) }
}

function whyNone(hub: string, { status, retryAfter }: HttpResponse): NoLogin {
  if (status === 401 || status === 403) {
    const reason = `${hub} gives strangers no credential (HTTP ${status}): name username and password`
    return { isRefused: true, reason, retryAfter: undefined }
  }
  return noLogin(`${hub}/auth/mqtt answered ${status}`, retryAfter)
}

function noLogin(reason: string, retryAfter?: number): NoLogin {
  return { isRefused: false, reason, retryAfter }
}
