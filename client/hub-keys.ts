import type { Http } from './http.ts'
import { isRecord } from './kind.ts'

/** A key of WebCrypto. The types of Node.js have no global name for it. */
type Key = Awaited<ReturnType<typeof crypto.subtle.importKey>>

/** The keys with which a hub signs the tokens of pushes. */
export interface HubKeys {
  /** The key of this id. Undefined: the hub has none. Rejects if the keys cannot be read. */
  find(kid: string): Promise<Key | undefined>
}

/** The key set is kept for this long, milliseconds: `max-age` of the hub's answer. */
const freshMs = 5 * 60_000
/** Without an answer of the hub it is used for this long, milliseconds (docs/webhooks.md, "Verify the token"). */
const longestMs = 10 * 60_000
/** The key set is not read more often, milliseconds: strangers can name any key. */
const pauseMs = 10_000
/** More keys than any hub has at a time. */
const maxKeys = 100

/** Reads the keys when they are needed, and again for an id that is not among them. */
export function createHubKeys(http: Http, url: string, clock = () => performance.now()): HubKeys {
  let keys: ReadonlyMap<string, Key> = new Map()
  let readAt = Number.NEGATIVE_INFINITY
  let triedAt = Number.NEGATIVE_INFINITY
  let problem: unknown
  let reading: Promise<void> | undefined

  return {
    async find(kid) {
      const isFresh = clock() - readAt < freshMs
      if (!(isFresh && keys.has(kid))) await refresh()
      if (clock() - readAt >= longestMs) throw problem
      return keys.get(kid)
    },
  }

  /** All who ask meanwhile wait for the same answer. */
  async function refresh(): Promise<void> {
    if (reading === undefined && clock() - triedAt < pauseMs) return
    triedAt = reading === undefined ? clock() : triedAt
    reading ??= read().finally(() => {
      reading = undefined
    })
    await reading
  }

  async function read(): Promise<void> {
    try {
      const { status, body } = await http('GET', url)
      const listed = isRecord(body) ? body.keys : undefined
      if (status !== 200 || !Array.isArray(listed)) throw new Error(`${url} answered ${status} without keys`)
      const read = await Promise.all(listed.slice(0, maxKeys).map(importKey))
      keys = new Map(read.flatMap((key) => key ?? []).map(({ kid, key }) => [kid, key]))
      readAt = clock()
      problem = undefined
    } catch (error) {
      problem = error
    }
  }
}

/** Undefined: a key for something else. */
async function importKey(jwk: unknown): Promise<{ kid: string; key: Key } | undefined> {
  if (!isRecord(jwk)) return undefined
  const { kty, kid, n, e, alg = 'RS256', use = 'sig' } = jwk
  if (kty !== 'RSA' || alg !== 'RS256' || use !== 'sig' || typeof kid !== 'string') return undefined
  if (typeof n !== 'string' || typeof e !== 'string') return undefined
  const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
  try {
    return { kid, key: await crypto.subtle.importKey('jwk', { kty, n, e }, algorithm, false, ['verify']) }
  } catch {
    return undefined // not a key that this platform can use; its tokens are of an unknown key
  }
}
