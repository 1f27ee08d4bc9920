import { type Answer, httpsError, refuse, refuseUntil } from '../answer.ts'
import {
  AskResetBody,
  LogInAnswer,
  LogInBody,
  RefreshBody,
  TraceAnswer,
  UseResetBody,
} from '../description/schemas.ts'
import type { LogInResult, UserLogIn } from '../users/log-in.ts'
import { TooBusy } from '../users/passwords.ts'
import type { ResetMail } from '../users/reset-mail.ts'
import type { Tokens } from '../users/tokens.ts'
import type { KnownUser, Users } from '../users/users.ts'
import type { Route } from './route.ts'

export interface AuthParts {
  users: Users
  logIn: UserLogIn
  tokens: Tokens
  resetMail: ResetMail | undefined
  /** Called with the outcome of every log-in. */
  counted: (outcome: 'ok' | 'wrong' | 'throttled' | 'busy') => void
  /** Does work in the background. A stopping hub waits for it. */
  inBackground: (work: () => Promise<void>) => void
}

/** Answers that every log-in may get, besides those about the password. */
export const throttled = {
  429: 'Too many failures; the header Retry-After says when to come back',
  503: 'Too many log-ins or bodies at once',
}
const loggedIn = { description: 'Logged in', schema: LogInAnswer }
/** Seconds after which a busy hub may be asked again. */
const busyRetry = 5

/** Log-in with e-mail address and password, and everything about tokens (design.md §9). */
export function authRoutes(parts: AuthParts): Route[] {
  const { users, logIn, tokens, resetMail, counted, inBackground } = parts
  // Operators log in to end a brown-out, so log-ins stay on.
  const base = { method: 'POST', tag: 'Log-in', track: 'publish', staysOnInBrownout: true } as const

  return [
    {
      ...base,
      path: '/auth/login',
      id: 'logIn',
      summary: 'Log in',
      body: [LogInBody],
      answers: {
        200: loggedIn,
        401: 'Wrong e-mail address or password',
        ...throttled,
      },
      async handle({ body, address, count }) {
        const { email, password } = body as LogInBody
        const result = await userOrRefusal(logIn.logIn(email, password, address), wrongPassword(), counted)
        if ('refused' in result) return result.refused
        counted('ok')
        if (isOfTrack(result.user)) count(result.user)
        return issue(result.user)
      },
    },
    {
      ...base,
      path: '/auth/refresh',
      id: 'refresh',
      summary: 'Exchange a refresh token for a new token',
      body: [RefreshBody],
      answers: {
        200: loggedIn,
        403: 'Not a valid refresh token',
      },
      async handle({ body, count }) {
        const { refreshToken } = body as RefreshBody
        const user = await tokens.userOfRefresh(refreshToken)
        if (!user) return refuse(403, [httpsError('refresh.invalid')])
        if (isOfTrack(user)) count(user)
        return issue(user)
      },
    },
    {
      ...base,
      path: '/auth/reset',
      id: 'reset',
      summary: 'Ask for a link to choose a password, or choose it',
      description:
        'With `email`: mails a one-time link if there is such a user; the answer is the same if not. With `token` and `password`: sets the password and ends all log-ins made with the old one.',
      body: [UseResetBody, AskResetBody],
      answers: { 200: { description: 'Done', schema: TraceAnswer }, ...throttled },
      async handle({ body, address, count }) {
        if (isUse(body)) {
          const wrong = refuse(400, [httpsError('reset.invalid')])
          const result = await userOrRefusal(
            logIn.useReset(body.token, body.password, address),
            wrong,
            counted,
          )
          if ('refused' in result) return result.refused
          if (isOfTrack(result.user)) count()
          return { status: 200, body: { trace: null } }
        }
        const { email } = body as AskResetBody
        const asked = await logIn.mayAskForMail(email, address)
        if ('retryAfter' in asked) return refuseUntil(429, asked.retryAfter)
        const known = users.find(email)
        if (known && isOfTrack(known)) count()
        // In the background: the time to store and mail a token would reveal who has an account.
        if (asked.mailNow && resetMail) {
          inBackground(async () => {
            const reset = await users.issueReset(email, 'mail')
            if (reset) await resetMail.send(reset)
          })
        }
        return { status: 200, body: { trace: null } }
      },
    },
  ]

  async function issue(user: KnownUser): Promise<Answer> {
    return { status: 200, body: { ...(await tokens.issue(user)), user: shownUser(user), trace: null } }
  }
}

/** What a log-in says of its user. */
export function shownUser({ userId, email, emailVerified, institutionId }: KnownUser) {
  return { user_id: userId, email, email_verified: emailVerified, institution: institutionId }
}

/** Whether a log-in counts as a use of the track. Log-ins of operators do not: operators are no publishers. */
function isOfTrack({ permissions }: Pick<KnownUser, 'permissions'>): boolean {
  return !permissions.includes('operate')
}

/**
 * Resolves with the user of a log-in, or with the answer that refuses the log-in. `wrong`: the answer to a wrong
 * password or token.
 */
export async function userOrRefusal(
  attempt: Promise<LogInResult>,
  wrong: Answer,
  counted: AuthParts['counted'],
): Promise<{ user: KnownUser } | { refused: Answer }> {
  const result = await unlessBusy(attempt)
  if ('user' in result) return result
  counted(result.refused)
  if (result.refused === 'throttled') return { refused: refuseUntil(429, result.retryAfter) }
  return { refused: result.refused === 'busy' ? refuseUntil(503, busyRetry) : wrong }
}

/** The answer to a wrong password. The usual message of 401 is about a missing header (service.md §7). */
export function wrongPassword(): Answer {
  const wrong = httpsError('login.wrong')
  return refuse(401, [wrong], wrong.message)
}

async function unlessBusy(attempt: Promise<LogInResult>): Promise<LogInResult | { refused: 'busy' }> {
  try {
    return await attempt
  } catch (error) {
    if (error instanceof TooBusy) return { refused: 'busy' }
    throw error
  }
}

function isUse(body: unknown): body is UseResetBody {
  return typeof body === 'object' && body !== null && 'token' in body
}
