import type { CallFailure } from '../connection.ts'
import { type Answer, type Hub, send } from './request.ts'

/** The tokens of a log-in. */
interface Session {
  token: string
  refreshToken: string
  /** When the token ends, ISO 8601. */
  expires: string
}

type Outcome = { session: Session } | { refused: Answer } | { error: CallFailure }

const path = '/auth/session'
const cookieName = '__Secure-hub-session'
/** The hub refuses requests without this header: a page of another site may have sent them. */
const asPage = { 'x-hub-page': 'hubctl' }

/**
 * Logs in by `/auth/session`, as the web pages do. The other route, `/auth/login`, will be retired with the HTTPS API
 * of publishers.
 */
export async function beginSession(hub: Hub, body: { email: string; password: string }): Promise<Outcome> {
  return outcomeOf(await send(hub, ['POST', path], { body, headers: asPage }))
}

/** Exchanges the refresh token for new tokens. */
export async function renewSession(hub: Hub, refreshToken: string): Promise<Outcome> {
  const headers = { ...asPage, cookie: `${cookieName}=${refreshToken}` }
  return outcomeOf(await send(hub, ['PUT', path], { headers }))
}

function outcomeOf(answer: Answer | { error: CallFailure }): Outcome {
  if ('error' in answer) return answer
  const { status, body, cookie: refreshToken } = answer
  const { token, expires } = Object(body)
  if (status !== 200 || refreshToken === undefined) return { refused: answer }
  return { session: { token, refreshToken, expires } }
}
