import type { LoginLimit } from '../../listener/login-limit.ts'
import { originOf } from '../../listener/origin.ts'
import { caughtUp } from '../../store/caught-up.ts'
import type { Store } from '../../store/store.ts'
import { withoutAccount } from './strangers.ts'

export type Readers = ReturnType<typeof createReaders>

/**
 * Admits readers: programs that show a credential with each request (open.md §4). Wrong ones count as failed log-ins
 * of their address, together with those over MQTT.
 */
export function createReaders(parts: {
  credentials: {
    authenticateReader(
      username: string,
      password: Buffer,
    ): { username: string; filters: readonly string[] } | undefined
    isValid(username: string): boolean
  }
  store: Store
  loginLimit: LoginLimit
  /** Notes that a credential was used. */
  noteUse: (username: string) => void
  counted: (outcome: 'wrong' | 'throttled') => void
}) {
  const { credentials, store, loginLimit, noteUse, counted } = parts
  return {
    /**
     * The reader of a header `Authorization`, with the user that routes get for it: one without an account, who may only
     * read. Or the seconds that its address has to wait. Undefined: a wrong one.
     */
    async admit(authorization: string, address: string) {
      const origin = originOf(address).address
      // First of all: a blocked address learns nothing, not even that a password is right.
      const retryAfter = await loginLimit.secondsBlocked(origin)
      if (retryAfter !== undefined) {
        counted('throttled')
        return { retryAfter }
      }
      const { username, password } = credentialsIn(authorization)
      const find = () => credentials.authenticateReader(username, password)
      const reader = find() ?? ((await caughtUp(store)) ? find() : undefined)
      if (!reader) {
        counted('wrong')
        await loginLimit.failed(origin)
        return undefined
      }
      // A banned reader has the right password. So this is no failed log-in of its address.
      if (!credentials.isValid(reader.username)) return undefined
      noteUse(reader.username)
      return { user: withoutAccount(reader.username), filters: reader.filters }
    },

    /** Whether a reader may still read. */
    isValid: (username: string): boolean => credentials.isValid(username),
  }
}

/** Whether a header `Authorization` has the scheme Basic (RFC 7617). Schemes have no case (RFC 9110 §11.1). */
export function isBasic(authorization: string | undefined): authorization is string {
  return authorization !== undefined && /^basic(?: |$)/i.test(authorization)
}

/** What a header with the scheme Basic says: in UTF-8, with the password behind the first colon (RFC 7617 §2). */
function credentialsIn(authorization: string): { username: string; password: Buffer } {
  const bytes = Buffer.from(authorization.slice('basic '.length), 'base64')
  const colon = bytes.indexOf(':')
  const end = colon < 0 ? bytes.length : colon
  return { username: bytes.toString('utf8', 0, end), password: bytes.subarray(end + 1) }
}
