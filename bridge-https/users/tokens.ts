import { randomUUID } from 'node:crypto'
import { decodeProtectedHeader, type JWTPayload, jwtVerify, SignJWT } from 'jose'
import { algorithm, type SigningKeys } from '../../certs/signing-keys.ts'
import type { KnownUser, Users } from './users.ts'

export type Tokens = ReturnType<typeof createTokens>

/** What a log-in brings. */
interface IssuedTokens {
  token: string
  refreshToken: string
  /** Seconds that `token` is valid. */
  expiresIn: number
  expires: string
}

/** Seconds (design.md §9 for the first; the second is ours). */
export const lifetimes = { access: 3600, refresh: 30 * 24 * 3600, service: 3600 }

/** The header `typ` keeps one kind of token from being taken for another (RFC 8725 §3.11). */
const types = { access: 'at+jwt', refresh: 'rt+jwt', service: 'JWT' } as const

/** Longer ones are not ours: not worth looking at. */
const maxTokenLength = 8192

/** Makes and checks the tokens of users, and those that the hub itself shows to webhooks (service.md §5). */
export function createTokens(parts: {
  keys: SigningKeys
  users: Users
  /** Public URL of the hub: issuer and audience. Asked late, because it may hold a port that is not known yet. */
  issuer: () => string
  /** The account in the claims of pushes. */
  serviceAccount: string
  clock: () => number
}) {
  const { keys, users, issuer, serviceAccount, clock } = parts

  return {
    async issue(user: KnownUser): Promise<IssuedTokens> {
      const now = Math.floor(clock() / 1000)
      // Of the password that was checked: by now there may be another one.
      const claims = { sub: user.userId, gen: user.generation }
      const { email, institutionId: institution, permissions } = user
      return {
        token: await sign('access', { ...claims, email, institution, permissions }, issuer(), now),
        refreshToken: await sign('refresh', claims, issuer(), now),
        expiresIn: lifetimes.access,
        expires: new Date((now + lifetimes.access) * 1000).toISOString(),
      }
    },

    /** The user an access token was made for, as it is now; undefined for every other text. */
    userOf: (token: string): Promise<KnownUser | undefined> => holder(token, 'access'),

    /** The user a refresh token was made for. Void after a change of the password and removal of the user. */
    userOfRefresh: (token: string): Promise<KnownUser | undefined> => holder(token, 'refresh'),

    /** A token of the hub itself for one receiver (design.md §10), in the name of this account. */
    issueService(audience: string, account = serviceAccount): Promise<string> {
      const claims = { sub: account, email: account, email_verified: true }
      return sign('service', claims, audience, Math.floor(clock() / 1000))
    },

    /** Whether a token is one that the hub made for this receiver. */
    async isService(token: string, audience: string): Promise<boolean> {
      const payload = await verify(token, 'service', audience)
      return payload?.email === serviceAccount
    },
  }

  async function sign(
    kind: keyof typeof types,
    claims: JWTPayload,
    audience: string,
    now: number,
  ): Promise<string> {
    const { kid, key } = keys.current()
    return new SignJWT(claims)
      .setProtectedHeader({ alg: algorithm, kid, typ: types[kind] })
      .setIssuer(issuer())
      .setAudience(audience)
      .setIssuedAt(now)
      .setExpirationTime(now + lifetimes[kind])
      .setJti(randomUUID())
      .sign(key)
  }

  async function holder(token: string, kind: 'access' | 'refresh'): Promise<KnownUser | undefined> {
    const payload = await verify(token, kind, issuer())
    if (typeof payload?.sub !== 'string' || typeof payload.gen !== 'number') return undefined
    return users.current(payload.sub, payload.gen)
  }

  async function verify(
    token: string,
    kind: keyof typeof types,
    audience: string,
  ): Promise<JWTPayload | undefined> {
    if (token.length > maxTokenLength) return undefined
    try {
      const key = keys.find(decodeProtectedHeader(token).kid)
      if (!key) return undefined
      const { payload } = await jwtVerify(token, key, {
        algorithms: [algorithm],
        issuer: issuer(),
        audience,
        typ: types[kind],
        currentDate: new Date(clock()),
        requiredClaims: ['sub', 'exp', 'iat'],
      })
      return payload
    } catch {
      return undefined // whatever is wrong with it, the answer is the same
    }
  }
}
