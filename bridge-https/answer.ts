import type { Socket } from 'node:net'
import type { ErrorItem } from '../event/error.ts'

/**
 * The answer of a route. `body` is a text, JSON as bytes, or a value to send as JSON. Undefined: no body, or `file` is
 * the body.
 */
export interface Answer {
  status: number
  body: unknown
  headers?: Record<string, string>
  /** The file whose content is the body. `isForever`: the name changes with the content, so caches may keep the file. */
  file?: { directory: string; name: string; isForever?: boolean }
  /** Writes the body, behind the headers, for as long as the connection lasts. */
  stream?: (socket: Socket) => void
}

/** Error codes of the HTTPS API, except those of events. `path`: the part of the request that is wrong. */
export const httpsErrors = {
  'authorization.missing': {
    path: '.headers.authorization',
    message: 'The header Authorization with a bearer token is missing',
  },
  'authorization.invalid': {
    path: '.headers.authorization',
    message: 'The token is not valid, or has expired',
  },
  'authorization.permission': {
    path: '.headers.authorization',
    message: 'The user lacks the permission for this',
  },
  'reader.wrong': {
    path: '.headers.authorization',
    message: 'The user name or the password is not one of a reader, or it was revoked, or is banned',
  },
  'login.wrong': { path: '.body', message: 'The e-mail address or the password is wrong' },
  'refresh.invalid': {
    path: '.body.refreshToken',
    message: 'The refresh token is not valid, or has expired',
  },
  'session.invalid': {
    path: '.headers.cookie',
    message: 'Nobody is logged in here, or the log-in has expired',
  },
  'session.foreign': {
    path: '.headers.x-hub-page',
    message: 'Only the pages of the hub may ask for this',
  },
  'credential.filters': { path: '.body.filters', message: 'There is no credential with these filters' },
  'reset.invalid': {
    path: '.body.token',
    message: 'The link is not valid, has expired, or was used already',
  },
  'contact.invalid': {
    path: '.body.token',
    message: 'The link is not valid, has expired, or another address took the place of this one',
  },
  'webhook.url': { path: '.body.url', message: 'Events cannot be sent to this URL' },
  'subscription.from': { path: '.body.from', message: 'The subscription cannot begin then' },
  'replay.since': { path: '.body.since', message: 'Events since then cannot be sent again' },
  'subscription.livestreams': {
    path: '.body.livestreams',
    message: 'The list has all livestreams and others',
  },
  'subscription.limit': { path: '.body', message: 'The institution has too many subscriptions' },
  'time.ahead': { path: '.params.time', message: 'The time lies ahead' },
  'request.type': { path: '.headers.content-type', message: 'The body must be application/json' },
  'request.encoding': { path: '.headers.content-encoding', message: 'The body must not be compressed' },
  'request.length': {
    path: '.headers.content-length',
    message: 'The body is not as long as the header says',
  },
  'request.upgrade': {
    path: '.headers.upgrade',
    message: 'The only upgrade is to WebSocket with the sub-protocol mqtt, by GET /mqtt',
  },
  'request.form': { path: '.', message: 'The request is not well-formed HTTP' },
} as const satisfies Record<string, Omit<ErrorItem, 'errorCode'>>

type HttpsErrorCode = keyof typeof httpsErrors

/** An error item of the HTTPS API. `detail` follows the message of the code. */
export function httpsError(errorCode: HttpsErrorCode, detail?: string): ErrorItem {
  const { path, message } = httpsErrors[errorCode]
  return { path, message: detail === undefined ? message : `${message}: ${detail}`, errorCode }
}

export interface StatusRow {
  message: string
  /** The answer says which parts of the request are wrong. */
  listsErrors?: true
  /** The header Retry-After may say when to come back. */
  mayRetry?: true
}

/** The statuses that refuse a request, with the message of each (service.md §7). */
export const errorStatuses = {
  400: { message: 'Invalid input', listsErrors: true },
  401: { message: 'Missing authentication', listsErrors: true },
  403: { message: 'Invalid authorization', listsErrors: true },
  404: { message: 'Not found' },
  408: { message: 'The request took too long' },
  409: { message: 'Not possible now' },
  410: { message: 'Gone' },
  413: { message: 'The body is too large', listsErrors: true },
  426: { message: 'Only WebSocket is served here' },
  429: { message: 'Too many requests, try again later', mayRetry: true },
  431: { message: 'The header fields are too large' },
  500: { message: 'Internal server error' },
  503: { message: 'Not available, try again later', mayRetry: true },
} as const satisfies Record<number, StatusRow>

export type ErrorStatus = keyof typeof errorStatuses

/** The envelope of an error (service.md §7). */
export function envelope(status: ErrorStatus, errors?: readonly ErrorItem[], message?: string) {
  return {
    message: message ?? errorStatuses[status].message,
    ...(errors !== undefined && errors.length > 0 && { errors }),
    trace: null,
  }
}

/** Tells a client how to authenticate (RFC 9110 §15.5.2, RFC 6750 §3). */
const challenge = { 'www-authenticate': 'Bearer realm="now-playing hub"' }

/** An answer that refuses a request. */
export function refuse(status: ErrorStatus, errors?: readonly ErrorItem[], message?: string): Answer {
  const body = envelope(status, errors, message)
  return status === 401 ? { status, body, headers: challenge } : { status, body }
}

/** An answer whose body is already JSON text. */
export function jsonText(body: string): Answer {
  return { status: 200, body, headers: { 'content-type': 'application/json; charset=utf-8' } }
}

/** An answer that refuses a request until `retryAfter` seconds have passed. */
export function refuseUntil(status: 429 | 503, retryAfter: number, message?: string): Answer {
  return { ...refuse(status, undefined, message), headers: { 'retry-after': String(retryAfter) } }
}

/** Turns paths within the body into paths within the request: `.start` becomes `.body.start`. */
export function belowBody(errors: readonly ErrorItem[]): ErrorItem[] {
  return errors.map((error) => ({ ...error, path: error.path === '.' ? '.body' : `.body${error.path}` }))
}
