import type { HubEvent } from './events.ts'
import type { Http } from './http.ts'
import { createHubKeys, type HubKeys } from './hub-keys.ts'
import { isRecord } from './kind.ts'
import { wrongOption } from './options.ts'
import { readUrl } from './url.ts'

/** What a receiver got: a `Request`, a request of Node.js or Express, or headers and body of any other server. */
export type PushRequest = { headers: unknown } & ({ body?: unknown } | AsyncIterable<Uint8Array | string>)

export interface VerifyPushOptions {
  /** Base URL of the hub: its keys are at `/.well-known/jwks.json`. */
  hub: string
  /** The URL of the receiver, as it was given to the subscription. */
  url: string
  /** The subscriptions that push to it, as `GET /subscriptions` lists them. */
  subscriptions: Iterable<{ name: string; serviceAccount: string }>
  /** `iss` of the tokens, where it is not the base URL of the hub. */
  issuer?: string | undefined
  /** CA to trust instead of those of the system: PEM text or, in Node.js, the path of a PEM file. */
  ca?: string | undefined
}

/** A push that is genuine. */
export interface Push {
  event: HubEvent
  /** The same for every repetition: remember those that you have processed. */
  messageId: string
  /** When the hub accepted the event, ISO 8601. */
  publishTime: string
  attributes: Readonly<Record<string, string>>
  subscription: string
}

/**
 * Why a push is refused: the status to answer with (docs/webhooks.md, "Verify the token"), and what it means. The codes
 * are stable.
 */
export const pushRefusals = {
  'push.unreadable': { status: 400, meaning: 'the request is no push of a hub' },
  'token.missing': { status: 401, meaning: 'the request has no Bearer token' },
  // The hub takes 204 as an acknowledgement, so a forger learns nothing.
  'token.invalid': { status: 204, meaning: 'the token is forged, has expired, or is for somebody else' },
  // After 503 the hub comes again.
  'subscription.unknown': { status: 503, meaning: 'the push is for no subscription of the list' },
  'key.unknown': { status: 503, meaning: 'the hub names no such key now' },
  'hub.unreachable': { status: 503, meaning: 'the keys of the hub could not be read' },
} as const

/** A push that is not genuine, or of which that cannot be told now. */
export class PushRefused extends Error {
  readonly code: keyof typeof pushRefusals
  /** The status to answer with. */
  readonly status: number

  constructor(code: keyof typeof pushRefusals, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'PushRefused'
    this.code = code
    this.status = pushRefusals[code].status
  }
}

export type VerifyPush = (request: PushRequest, options: VerifyPushOptions) => Promise<Push>

/** What differs between Node.js and others. */
export interface PushPlatform {
  readCa(ca: string): string
  httpTrusting(ca: string | undefined): Http
}

/** All pushes are smaller (docs/webhooks.md, "How large it is"). */
const maxBodyBytes = 1_000_000
/** All tokens of a hub are shorter. */
const maxTokenLength = 8_192
/** Difference between the clocks that is tolerated, seconds. */
const toleranceSeconds = 60
/** Key sets that are kept: one for each hub. */
const maxHubs = 100

/** Makes `verifyPush`, which keeps the keys of the hubs. */
export function createVerifyPush({ readCa, httpTrusting }: PushPlatform): VerifyPush {
  const known = new Map<string, HubKeys>()
  return async (request, options) => {
    checkOptions(options)
    const token = bearerOf(request.headers)
    const push = pushIn(await bodyOf(request))
    const subscription = [...options.subscriptions].find(({ name }) => name === push.subscription)
    if (subscription === undefined) {
      throw new PushRefused('subscription.unknown', `${shown(push.subscription)} is not in subscriptions`)
    }
    const hub = options.hub.replace(/\/+$/, '')
    const payload = await verify(token, keysOf(hub, options.ca))
    checkClaims(payload, {
      iss: options.issuer ?? hub,
      aud: options.url,
      email: subscription.serviceAccount,
    })
    return push
  }

  function keysOf(hub: string, ca: string | undefined): HubKeys {
    const name = `${hub} ${ca}`
    const keys =
      known.get(name) ?? createHubKeys(httpTrusting(ca && readCa(ca)), `${hub}/.well-known/jwks.json`)
    known.set(name, keys)
    const [oldest] = known.keys()
    if (known.size > maxHubs && oldest !== undefined) known.delete(oldest)
    return keys
  }
}

/** The claims of a token that a key of the hub has signed. */
async function verify(token: string, keys: HubKeys): Promise<Record<string, unknown>> {
  const parts = token.split('.')
  const [header, claims, signature] = parts.map(fromBase64Url)
  if (parts.length !== 3 || !header || !claims || !signature) throw invalid('it has not the form of a token')
  const { alg, kid, typ, crit } = jsonIn(header)
  // The algorithm is the hub's, whatever the token would like (RFC 8725 §3.1).
  if (alg !== 'RS256') throw invalid('it is not signed with RS256')
  if (typeof kid !== 'string' || kid === '') throw invalid('it names no key')
  // An access token of a user is signed with the same keys (RFC 8725 §3.11).
  if (typ !== undefined && typ !== 'JWT') throw invalid('it is a token for something else')
  if (crit !== undefined) throw invalid('it asks for an extension')
  const key = await keys.find(kid).catch((cause: unknown) => {
    throw new PushRefused('hub.unreachable', `the keys of the hub cannot be read: ${cause}`, { cause })
  })
  if (key === undefined) throw new PushRefused('key.unknown', `the hub names no key ${shown(kid)}`)
  const signed = new TextEncoder().encode(`${parts[0]}.${parts[1]}`)
  if (!(await crypto.subtle.verify('RSASSA-PKCS1-v1_5', key, signature, signed))) {
    throw invalid('its signature is wrong')
  }
  return jsonIn(claims)
}

function checkClaims(
  claims: Record<string, unknown>,
  expected: { iss: string; aud: string; email: string },
): void {
  const now = Date.now() / 1000
  const { iss, aud, email, exp, iat, nbf } = claims
  if (iss !== expected.iss) throw invalid(`iss is ${shown(iss)}, expected ${expected.iss}`)
  if (![aud].flat().includes(expected.aud)) throw invalid(`aud is ${shown(aud)}, expected ${expected.aud}`)
  if (email !== expected.email || claims.email_verified !== true) {
    throw invalid(`email is ${shown(email)}, expected ${expected.email}, verified`)
  }
  if (typeof exp !== 'number' || exp <= now - toleranceSeconds) throw invalid('it has expired')
  for (const [name, time] of Object.entries({ iat, nbf })) {
    if (time === undefined) continue
    if (typeof time !== 'number' || time > now + toleranceSeconds)
      throw invalid(`${name} is ahead of the clock`)
  }
}

function bearerOf(headers: unknown): string {
  const value =
    headers instanceof Headers
      ? headers.get('authorization')
      : (Object(headers).authorization ?? Object(headers).Authorization)
  const [, token] =
    /^Bearer +(\S+) *$/i.exec(String([value].flat()[0] ?? '').slice(0, 2 * maxTokenLength)) ?? []
  if (token === undefined)
    throw new PushRefused('token.missing', 'there is no header Authorization: Bearer …')
  if (token.length > maxTokenLength) throw invalid('it is longer than any token of a hub')
  return token
}

async function bodyOf(request: PushRequest): Promise<unknown> {
  const source: unknown = 'body' in request && request.body !== undefined ? request.body : request
  if (typeof source === 'string') return jsonOf(source)
  if (source instanceof Uint8Array) return jsonOf(decoded(source))
  if (isStream(source)) return jsonOf(await textIn(source))
  return source === request ? undefined : source
}

function isStream(source: unknown): source is AsyncIterable<unknown> {
  return typeof source === 'object' && source !== null && Symbol.asyncIterator in source
}

async function textIn(stream: AsyncIterable<unknown>): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of stream) {
    const piece = chunk instanceof Uint8Array ? chunk : new TextEncoder().encode(String(chunk))
    bytes += piece.byteLength
    if (bytes > maxBodyBytes) throw unreadable(`the body has more than ${maxBodyBytes} bytes`)
    chunks.push(piece)
  }
  return decoded(new Uint8Array(await new Blob(chunks).arrayBuffer()))
}

function decoded(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw unreadable('the body is not UTF-8')
  }
}

function jsonOf(text: string): unknown {
  if (text.length > maxBodyBytes) throw unreadable(`the body has more than ${maxBodyBytes} bytes`)
  try {
    return JSON.parse(text)
  } catch {
    throw unreadable('the body is not JSON')
  }
}

/** The push in a body (docs/webhooks.md, "What arrives"). */
function pushIn(body: unknown): Push {
  const { message, subscription } = isRecord(body) ? body : {}
  if (!isRecord(message) || typeof subscription !== 'string') {
    throw unreadable('the body has no message and subscription')
  }
  const { data, messageId, publishTime, attributes } = message
  if (typeof data !== 'string' || typeof messageId !== 'string' || typeof publishTime !== 'string') {
    throw unreadable('the message has no data, messageId and publishTime')
  }
  const bytes = fromBase64(data)
  const event = bytes && jsonOf(decoded(bytes))
  if (!isRecord(event)) throw unreadable('data is not an event as JSON in base64')
  return {
    event: event as unknown as HubEvent,
    messageId,
    publishTime,
    attributes: isRecord(attributes) ? (attributes as Record<string, string>) : {},
    subscription,
  }
}

function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[\w-]+$/.test(text)) return undefined
  return fromBase64(text.replaceAll('-', '+').replaceAll('_', '/'))
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}

/** A JSON object of a token. */
function jsonIn(bytes: Uint8Array): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    if (isRecord(value)) return value
  } catch {
    // The same as anything else that is no object.
  }
  throw invalid('it is not of JSON')
}

function invalid(why: string): PushRefused {
  return new PushRefused('token.invalid', `the token is not valid: ${why}`)
}

function unreadable(why: string): PushRefused {
  return new PushRefused('push.unreadable', `no push: ${why}`)
}

/** What a stranger sent, for a message: short, and in one line. */
function shown(value: unknown): string {
  return (JSON.stringify(value) ?? 'missing').slice(0, 200)
}

function checkOptions({ hub, url, subscriptions, issuer }: VerifyPushOptions): void {
  if (!isUrl(hub, 'https:')) wrongOption('hub', 'must be an https URL')
  if (!isUrl(url)) wrongOption('url', 'must be the URL of the subscription')
  if (issuer !== undefined && !isUrl(issuer)) wrongOption('issuer', 'must be a URL')
  const list: unknown = subscriptions
  const isList = typeof list === 'object' && list !== null && Symbol.iterator in list
  if (!isList) wrongOption('subscriptions', 'must be the list of GET /subscriptions')
}

function isUrl(text: unknown, protocol?: string): boolean {
  const url = typeof text === 'string' ? readUrl(text) : undefined
  return url !== undefined && (protocol === undefined || url.protocol === protocol)
}
