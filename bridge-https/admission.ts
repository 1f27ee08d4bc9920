import { radioTree } from '../acl/access.ts'
import { type Answer, httpsError, refuse, refuseUntil } from './answer.ts'
import { needsToken, type Route } from './routes/route.ts'
import { isBasic, type Readers } from './users/readers.ts'
import type { Strangers } from './users/strangers.ts'
import type { Tokens } from './users/tokens.ts'
import type { KnownUser } from './users/users.ts'

/** Who asks, and what that permits. */
export interface Asker {
  /** Undefined on routes without a user. */
  user?: KnownUser
  /** What the asker may read of the radio tree. */
  filters: readonly string[]
  /** Id of the user, or user name of the reader. Undefined: the asker has shown no log-in. */
  holder?: string
  /** When the token ends, milliseconds since the epoch. */
  expiresAt?: number
  /** Whether the asker may still ask: the user or reader may have been removed. */
  isStillUser(): Promise<boolean>
}

/** `isCounted`: the request counts as a use of the route, because it showed a valid token. */
type Admission =
  | { asker: Asker; refused?: Answer; isCounted?: boolean }
  | { asker?: undefined; refused: Answer }

/** Finds out who asks, and decides whether they may use a route. */
export function createAdmission(parts: {
  tokens: Tokens
  strangers: Strangers
  readers: Readers | undefined
}) {
  const { tokens, strangers, readers } = parts
  const everything = [radioTree]
  const anybody: Asker = { filters: everything, isStillUser: async () => true }
  const invalid = { refused: refuse(403, [httpsError('authorization.invalid')]) }

  return async (route: Route, authorization: string | undefined, address: string): Promise<Admission> => {
    if (route.readers && readers && isBasic(authorization)) return ofReader(readers, authorization, address)
    const token = bearerIn(authorization)
    if (route.strangers && token === undefined) return ofStranger(address)
    if (!needsToken(route) && !route.strangers) return { asker: anybody }
    if (token === undefined) return { refused: refuse(401, [httpsError('authorization.missing')]) }
    if (route.permission === undefined)
      return (await route.admits?.(token)) ? { asker: anybody, isCounted: true } : invalid
    const held = await tokens.held(token)
    if (!held) return invalid
    const asker: Asker = {
      ...held,
      filters: everything,
      holder: held.user.userId,
      isStillUser: async () => (await tokens.userOf(token)) !== undefined,
    }
    if (held.user.permissions.includes(route.permission)) return { asker, isCounted: true }
    const refused = refuse(403, [httpsError('authorization.permission', route.permission)])
    return { asker, isCounted: true, refused }
  }

  async function ofReader(readers: Readers, authorization: string, address: string): Promise<Admission> {
    const admitted = await readers.admit(authorization, address)
    if (!admitted) return { refused: refuse(403, [httpsError('reader.wrong')]) }
    if ('retryAfter' in admitted) return { refused: refuseUntil(429, admitted.retryAfter) }
    const { userId: holder } = admitted.user
    return {
      asker: { ...admitted, holder, isStillUser: async () => readers.isValid(holder) },
      isCounted: true,
    }
  }

  async function ofStranger(address: string): Promise<Admission> {
    const admitted = await strangers.admit(address)
    if ('retryAfter' in admitted) return { refused: refuseUntil(429, admitted.retryAfter) }
    return { asker: { ...anybody, user: admitted.user } }
  }
}

/** The bearer token (RFC 6750 §2.1). Undefined for every other kind of authorization. */
function bearerIn(authorization = ''): string | undefined {
  return /^bearer +([^\s]+) *$/i.exec(authorization)?.[1]
}
