import type { TemporaryCredentials } from '../../acl/temporary.ts'
import { type Answer, httpsError, refuse, refuseUntil } from '../answer.ts'
import {
  FirstOperatorBody,
  MqttCredential,
  MqttCredentialBody,
  Session,
} from '../description/page-schemas.ts'
import { LogInBody, TraceAnswer } from '../description/schemas.ts'
import { websocketPath } from '../request.ts'
import type { FirstOperator } from '../users/first-operator.ts'
import { isStranger } from '../users/strangers.ts'
import { lifetimes } from '../users/tokens.ts'
import type { KnownUser } from '../users/users.ts'
import { type AuthParts, shownUser, throttled, userOrRefusal, wrongPassword } from './auth-routes.ts'
import type { EventRate } from './event-routes.ts'
import { createOneAtATime, tooManyQuestions } from './one-at-a-time.ts'
import type { OperateParts } from './operate-routes.ts'
import type { Call, Route } from './route.ts'

const path = '/auth/session'
/**
 * Browsers take a cookie with this prefix only from an answer of this host over TLS, for all of its paths: no page of a
 * neighbouring host, and no script, can log a browser in as somebody else (RFC 6265bis; older ones know `__Host-`).
 */
const cookieName = '__Host-Http-hub-session'
const everything = ['radio/#']
/** The first operator belongs to no broadcaster. `subscribe` opens the on-air page. */
const firstOperatorAccount = {
  institution: 'urn:org:institution:operators',
  permissions: ['operate', 'subscribe'],
}
/** The audit log's name for the person who used the link. */
const firstOperatorName = 'first operator'

const loggedIn = { description: 'Logged in; the cookie is set', schema: Session }
const foreign = 'Not asked by a page of the hub'

type SessionParts = Pick<AuthParts, 'logIn' | 'tokens' | 'counted'> & {
  temporary: TemporaryCredentials
  publicUrl: () => string
  isPagePublic: boolean
  /** Undefined: the operator has configured a certificate (`HUB_TLS_CERT`). Such a node prints no link. */
  firstOperator: FirstOperator | undefined
  perform: OperateParts['perform']
  /** The publish rate of a user: making a credential counts as one event. */
  rate: EventRate
}

/** The routes with which pages log in. The refresh token is in a cookie, hidden from scripts. */
export function sessionRoutes(parts: SessionParts): Route[] {
  const { logIn, tokens, counted, rate, publicUrl } = parts
  const oneAtATime = createOneAtATime(rate)
  const base = { tag: 'Pages', path } as const

  return [
    {
      ...base,
      method: 'POST',
      id: 'beginSession',
      summary: 'Log in on a page of the hub',
      description:
        'Sets a cookie that renews the log-in, and ends the log-in of the cookie before. Needs the header `x-hub-page`, and is refused to other origins.',
      body: [LogInBody],
      answers: {
        200: loggedIn,
        401: 'Wrong e-mail address or password',
        403: foreign,
        ...throttled,
      },
      async handle({ body, address, header }) {
        if (isForeign(header, publicUrl())) return refuse(403, [httpsError('session.foreign')])
        const { email, password } = body as LogInBody
        const result = await userOrRefusal(logIn.logIn(email, password, address), wrongPassword(), counted)
        if ('refused' in result) return result.refused
        counted('ok')
        return begun(tokens, result.user, header)
      },
    },
    {
      ...base,
      method: 'PUT',
      id: 'renewSession',
      summary: 'Renew the log-in of a page by its cookie',
      answers: {
        200: loggedIn,
        403: `${foreign}, or nobody is logged in`,
        429: tooManyQuestions,
      },
      async handle(call) {
        const { header } = call
        if (isForeign(header, publicUrl())) return refuse(403, [httpsError('session.foreign')])
        const user = await tokens.userOfRefresh(cookieOf(header) ?? '')
        if (!user) return withCookie(refuse(403, [httpsError('session.invalid')]), '', 0)
        return oneAtATime(call, user, async () => ({ answer: await session(tokens, user), bytes: 0 }))
      },
    },
    {
      ...base,
      method: 'DELETE',
      id: 'endSession',
      summary: 'Log out on a page of the hub',
      description:
        'Every token that goes back to this log-in is void then, and every MQTT credential made with one.',
      answers: { 200: { description: 'The cookie is gone', schema: TraceAnswer }, 403: foreign },
      async handle({ header }) {
        if (isForeign(header, publicUrl())) return refuse(403, [httpsError('session.foreign')])
        await tokens.endLogin(cookieOf(header) ?? '')
        return withCookie({ status: 200, body: { trace: null } }, '', 0)
      },
    },
    firstOperatorRoute(parts),
    mqttCredentialRoute(parts),
  ]
}

/** Makes the credential with which a page reads events. */
function mqttCredentialRoute({ temporary, publicUrl, isPagePublic, rate }: SessionParts): Route {
  const oneAtATime = createOneAtATime(rate)
  return {
    method: 'POST',
    path: '/auth/mqtt',
    id: 'mqttCredential',
    summary: 'Get an MQTT credential for a page, for one hour',
    description:
      'It reads what its filters permit, has no persistent sessions, and its client ids are empty or begin with `page-`. A node with a public page (`HUB_PUBLIC_PAGE`) gives strangers one as well: it reads `radio/#`, and they may not name filters.',
    tag: 'Pages',
    permission: 'subscribe',
    strangers: isPagePublic,
    crossOrigin: true,
    body: [MqttCredentialBody],
    mayLackBody: true,
    answers: {
      200: { description: 'The credential; its password is shown once', schema: MqttCredential },
      429: 'The user has too many of them, or the user or the address asks too often',
    },
    async handle(call, user) {
      const { filters } = call.body as MqttCredentialBody
      if (!isStranger(user)) {
        return oneAtATime(call, user, async () => {
          const answer = answerWith(await temporary.forUser(user, filters ?? everything))
          return { answer, bytes: 0 }
        })
      }
      if (filters) return refuse(400, [httpsError('credential.filters', 'without a log-in it is radio/#')])
      return answerWith(await temporary.forStrangers(user))
    },
  }

  function answerWith(made: Awaited<ReturnType<TemporaryCredentials['forUser']>>): Answer {
    if ('retryAfter' in made) return refuseUntil(429, made.retryAfter)
    if ('isVoid' in made) return refuse(403, [httpsError('authorization.invalid')])
    if ('error' in made) return refuse(400, [httpsError('credential.filters', made.error)])
    const { username, password, filters, expiresAt } = made
    const url = `${publicUrl().replace(/^https/, 'wss')}${websocketPath}`
    return { status: 200, body: { username, password, url, filters, expiresAt } }
  }
}

function firstOperatorRoute(parts: SessionParts): Route {
  const { logIn, tokens, counted, firstOperator, perform, publicUrl } = parts
  return {
    method: 'POST',
    path: '/auth/first-operator',
    id: 'firstOperator',
    summary: 'Make the account of the first operator, by the link that the node printed, and log in',
    tag: 'Pages',
    body: [FirstOperatorBody],
    answers: {
      200: loggedIn,
      403: foreign,
      409: 'There is no such account: `message` says why',
      ...throttled,
    },
    async handle({ body, address, header }) {
      if (isForeign(header, publicUrl())) return refuse(403, [httpsError('session.foreign')])
      const { token, email, password } = body as FirstOperatorBody
      const wrong = refuse(400, [httpsError('reset.invalid')])
      // A wrong link counts as a failed log-in: the hub tries a reset with the empty token, which always fails.
      if (!firstOperator?.take(token)) {
        const result = await userOrRefusal(logIn.useReset('', password, address), wrong, counted)
        return 'refused' in result ? result.refused : wrong
      }
      const made = await perform('users.add', { email, ...firstOperatorAccount }, firstOperatorName)
      if ('error' in made) {
        firstOperator.giveBack()
        const { code, message } = made.error
        return refuse(code === 'refused' ? 409 : 500, undefined, message)
      }
      const { resetToken } = Object(made.result)
      const reset = logIn.useReset(String(resetToken), password, address)
      let hasPassword = false
      try {
        const result = await userOrRefusal(reset, wrong, counted)
        if ('refused' in result) return result.refused
        hasPassword = true
        return await begun(tokens, result.user, header)
      } finally {
        // Removes an account that got no password. Nobody could use that account. While the account exists, no later
        // start would print a link.
        if (!hasPassword) {
          await perform('users.remove', { email }, firstOperatorName)
          firstOperator.giveBack()
        }
      }
    },
  }
}

/** A new log-in of a page. The browser forgets the one that its cookie held, so that one ends. */
async function begun(tokens: AuthParts['tokens'], user: KnownUser, header: Call['header']): Promise<Answer> {
  await tokens.endLogin(cookieOf(header) ?? '')
  return session(tokens, user)
}

/** The log-in of a page, with the cookie that renews it. */
async function session(tokens: AuthParts['tokens'], user: KnownUser): Promise<Answer> {
  const { refreshToken, ...issued } = await tokens.issue(user)
  const shown = { ...shownUser(user), permissions: user.permissions }
  const answer = { status: 200, body: { ...issued, user: shown, trace: null } }
  return withCookie(answer, refreshToken, lifetimes.refresh)
}

function withCookie(answer: Answer, value: string, seconds: number): Answer {
  const cookie = `${cookieName}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; Secure; SameSite=Strict`
  return { ...answer, headers: { 'set-cookie': cookie } }
}

function cookieOf(header: Call['header']): string | undefined {
  const cookies = (header('cookie') ?? '').split(/; */)
  return cookies.find((one) => one.startsWith(`${cookieName}=`))?.slice(cookieName.length + 1)
}

/**
 * Whether a request comes from elsewhere than a page of this hub. SameSite=Strict does not stop a hostile page of the
 * same site. Such a page cannot send `x-hub-page` without permission (CORS), or hide its origin.
 */
function isForeign(header: Call['header'], publicUrl: string): boolean {
  if (header('x-hub-page') === undefined) return true
  const origin = header('origin')
  if (origin === undefined) return false
  // People may also reach a node by another name than that of its public URL. But a proxy may send a Host of its own.
  const host = header('host')
  return origin !== new URL(publicUrl).origin && (!host || origin !== `https://${host}`)
}
