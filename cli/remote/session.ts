import type { CallFailure } from '../connection.ts'
import { type HttpResponse, type HubAddress, send } from './request.ts'

/** The tokens of a log-in. */
interface Session {
  token: string
  refreshToken: string
  /** When the token ends, ISO 8601. */
  expires: string
}

type SessionResult = { session: Session } | { refused: HttpResponse } | { error: CallFailure }

const path = '/auth/session'
const cookieName = '__Host-Http-hub-session'

/**
 * Logs in by `/auth/session`, as the web pages do. The other route, `/auth/login`, will be retired with the HTTPS API
 * of publishers. `former`: the refresh token of a log-in that ends then.
 */
export async function beginSession(
  hub: HubAddress,
  body: { email: string; password: string },
  former: string | undefined,
): Promise<SessionResult> {
  return outcomeOf(await send(hub, ['POST', path], { body, headers: headersOf(former) }))
}

/** Exchanges the refresh token for new tokens. */
export async function renewSession(hub: HubAddress, refreshToken: string): Promise<SessionResult> {
  return outcomeOf(await send(hub, ['PUT', path], { headers: headersOf(refreshToken) }))
}

/** Makes a refresh token void, with all tokens of its log-in. */
export function endSession(
  hub: HubAddress,
  refreshToken: string,
): Promise<HttpResponse | { error: CallFailure }> {
  return send(hub, ['DELETE', path], { headers: headersOf(refreshToken) })
}

/** The hub refuses requests without `x-hub-page`: a page of another site may have sent them. */
function headersOf(refreshToken: string | undefined): Record<string, string> {
  const cookie = refreshToken === undefined ? {} : { cookie: `${cookieName}=${refreshToken}` }
  return { 'x-hub-page': 'hubctl', ...cookie }
}

function outcomeOf(response: HttpResponse | { error: CallFailure }): SessionResult {
  if ('error' in response) return response
  const { status, body, cookie: refreshToken } = response
  const { token, expires } = Object(body)
  if (status !== 200 || refreshToken === undefined) return { refused: response }
  return { session: { token, refreshToken, expires } }
}
