import { randomUUID } from 'node:crypto'
import { decodeProtectedHeader, type JWK, type JWTPayload, jwtVerify, SignJWT } from 'jose'
import { algorithm, type SigningKeys } from '../../certs/signing-keys.ts'
import type { KnownUser, Users } from './users.ts'

export type Tokens = ReturnType<typeof createTokens>

/** What a valid token says: its user, as stored now, and when it ends, milliseconds since the epoch. */
interface HeldTokens {
  user: KnownUser
  expiresAt: number
}

/** How long tokens are valid, seconds. design.md §9 sets `access`, this project chose `refresh`. */
export const lifetimes = { access: 3600, refresh: 30 * 24 * 3600, service: 3600 }

/**
 * The token of a push begins so many seconds before it is made. Libraries of receivers refuse an `iat` that is ahead of
 * their clock, many without any leeway, and service.md §5.6 lets a receiver answer 204 then: the event would be lost.
 */
const receiverBehind = 60

/** The header `typ` keeps one kind of token from being taken for another (RFC 8725 §3.11). */
const types = { access: 'at+jwt', refresh: 'rt+jwt', service: 'JWT' } as const

/** Longest token that is checked. All tokens that the hub makes are shorter. */
const maxTokenLength = 8192

/** Maximum number of verified tokens that are remembered; the oldest are dropped. */
const maxVerified = 1_000

/** A token that was verified for one kind and one audience. */
interface Verified {
  kid: string
  key: JWK
  kind: keyof typeof types
  audience: string
  payload: JWTPayload
}

/** Makes and checks tokens of users, and tokens of the hub for webhooks (service.md §5). */
export function createTokens(parts: {
  keys: SigningKeys
  users: Users
  /** Public URL of the hub, as issuer and audience. A function, because the port may be unknown at first. */
  issuer: () => string
  /** The account that the tokens of pushes name in their claims. */
  serviceAccount: string
  clock: () => number
}) {
  const { keys, users, issuer, serviceAccount, clock } = parts
  /** Verified tokens by their text. The signature of a repeated token is not checked again. */
  const verified = new Map<string, Verified>()

  return {
    /** The tokens of a log-in. `expiresIn`: seconds that `token` is valid. */
    async issue(user: KnownUser) {
      const now = Math.floor(clock() / 1000)
      // `gen` is the generation of the checked password. A newer password makes the tokens void.
      const claims = { sub: user.userId, gen: user.generation, sid: user.loginId ?? randomUUID() }
      const { email, institutionId: institution, permissions } = user
      return {
        token: await sign('access', { ...claims, email, institution, permissions }, issuer(), now),
        refreshToken: await sign('refresh', claims, issuer(), now),
        expiresIn: lifetimes.access,
        expires: new Date((now + lifetimes.access) * 1000).toISOString(),
      }
    },

    /** The user of an access token, as stored now. Undefined: the token is not valid. */
    userOf: async (token: string): Promise<KnownUser | undefined> => (await held(token, 'access'))?.user,

    /** The user of an access token, and when the token ends. Undefined: the token is not valid. */
    held: (token: string): Promise<HeldTokens | undefined> => held(token, 'access'),

    /** The user of a refresh token, as stored now. Undefined: the token is not valid. */
    userOfRefresh: async (token: string): Promise<KnownUser | undefined> =>
      (await held(token, 'refresh'))?.user,

    /** Ends the log-in of a refresh token. Any other text has no effect. */
    async endLogin(refreshToken: string): Promise<void> {
      const found = await held(refreshToken, 'refresh')
      if (found) await users.endLogin(found.user, clock() + lifetimes.refresh * 1000)
    },

    /** A token of the hub itself for one receiver (design.md §10), in the name of `account`. */
    issueService(audience: string, account = serviceAccount): Promise<string> {
      const claims = { sub: account, email: account, email_verified: true }
      return sign('service', claims, audience, Math.floor(clock() / 1000) - receiverBehind)
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

  async function held(token: string, kind: 'access' | 'refresh'): Promise<HeldTokens | undefined> {
    const payload = await verify(token, kind, issuer())
    if (typeof payload?.sub !== 'string' || typeof payload.gen !== 'number') return undefined
    const loginId = typeof payload.sid === 'string' ? payload.sid : undefined
    const user = await users.ofToken(payload.sub, payload.gen, loginId)
    return user && { user, expiresAt: (payload.exp ?? 0) * 1000 }
  }

  async function verify(
    token: string,
    kind: keyof typeof types,
    audience: string,
  ): Promise<JWTPayload | undefined> {
    if (token.length > maxTokenLength) return undefined
    const known = verified.get(token)
    if (known?.kind === kind && known.audience === audience && isStillValid(known)) return known.payload
    try {
      const { kid = '' } = decodeProtectedHeader(token)
      const key = keys.find(kid)
      if (!key) return undefined
      const { payload } = await jwtVerify(token, key, {
        algorithms: [algorithm],
        issuer: issuer(),
        audience,
        typ: types[kind],
        currentDate: new Date(clock()),
        requiredClaims: ['sub', 'exp', 'iat'],
      })
      verified.delete(token)
      verified.set(token, { kid, key, kind, audience, payload })
      const [oldest] = verified.keys()
      if (verified.size > maxVerified && oldest !== undefined) verified.delete(oldest)
      return payload
    } catch {
      return undefined // the caller need not know what is wrong with the token
    }
  }

  /** Whether a verified token has not expired, and its key is still in use. */
  function isStillValid({ kid, key, payload }: Verified): boolean {
    return (payload.exp ?? 0) > Math.floor(clock() / 1000) && keys.find(kid) === key
  }
}
