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
  'webhook.url': { path: '.body.url', message: 'Events cannot be sent to this URL' },
  'subscription.from': { path: '.body.from', message: 'The subscription cannot begin then' },
  'replay.since': { path: '.body.since', message: 'Events since then cannot be sent again' },
  'subscription.limit': { path: '.body', message: 'The institution has too many subscriptions' },
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

/** The message of each status (service.md §7). */
const messages = {
  400: 'Invalid input',
  401: 'Missing authentication',
  403: 'Invalid authorization',
  404: 'Not found',
  408: 'The request took too long',
  409: 'Not possible now',
  410: 'Gone',
  413: 'The body is too large',
  426: 'Only WebSocket is served here',
  429: 'Too many requests, try again later',
  431: 'The header fields are too large',
  500: 'Internal server error',
  503: 'Not available, try again later',
} as const

export type ErrorStatus = keyof typeof messages

/** The envelope of an error (service.md §7). */
export function envelope(status: ErrorStatus, errors?: readonly ErrorItem[], message?: string) {
  return {
    message: message ?? messages[status],
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
