import { setTimeout as delay } from 'node:timers/promises'
import type { CallFailure, CallResult } from '../connection.ts'
import { type KeptLogIn, keepLogIn, readLogIn } from './kept-log-in.ts'
import { type HttpResponse, type HubAddress, send } from './request.ts'
import { renewSession } from './session.ts'

/** Pause between two requests for new events, milliseconds. */
const pollMs = 1_000
/** A token that ends within this time is exchanged before it is used, milliseconds. */
const marginMs = 30_000

/** Sends commands over HTTPS, as the user who logged in. `ca` replaces the CA of the log-in. */
export function openRemote(url: string, ca: string | undefined) {
  return { call, readLines }

  async function call(command: string, args: Record<string, unknown>): Promise<CallResult> {
    const response = await ask(command, args)
    return 'error' in response ? response : resultOf(response, url)
  }

  /**
   * Asks for new events every second. A list has all lines in one answer. Resolves with the reason why there are no more
   * lines.
   */
  async function readLines(
    command: string,
    { args, print }: { args: Record<string, unknown>; print: (value: unknown) => void },
  ): Promise<CallFailure> {
    for (let after: unknown; ; ) {
      const response = await ask(command, after === undefined ? args : { ...args, after })
      if ('error' in response) return response.error
      if (response.status === 429) {
        await delay(response.retryAfter * 1000)
        continue
      }
      const page = resultOf(response, url)
      if ('error' in page) return page.error
      if (Array.isArray(page.result)) {
        for (const line of page.result) print(line)
        return { code: 'node.unreachable', message: `the hub at ${url} has ended the lines` }
      }
      const { events, next, leftOut } = Object(page.result)
      // Print the number of left-out events first. Left-out events are older than the events of this page.
      if (leftOut !== 0) print({ leftOut })
      for (const event of Array.isArray(events) ? events : []) print(event)
      after = next
      await delay(pollMs)
    }
  }

  /** Sends a command. Exchanges the token shortly before its end, or if it is refused. */
  async function ask(command: string, args: object): Promise<HttpResponse | { error: CallFailure }> {
    const kept = await readLogIn(url)
    if (!kept) return failed('login.missing', `you are not logged in at ${url}: hubctl login --url ${url}`)
    const askAs = ({ token }: KeptLogIn) =>
      perform({ url, ca: ca ?? kept.ca }, command, { body: args, token })
    if (Date.parse(kept.expires) - Date.now() > marginMs) {
      const response = await askAs(kept)
      if ('error' in response || codeOf(response) !== 'authorization.invalid') return response
    }
    const renewed = await renew(kept)
    return 'error' in renewed ? renewed : askAs(renewed)
  }

  async function renew(kept: KeptLogIn): Promise<KeptLogIn | { error: CallFailure }> {
    const outcome = await renewSession({ url, ca: ca ?? kept.ca }, kept.refreshToken)
    if ('error' in outcome) return outcome
    if ('refused' in outcome) {
      if (codeOf(outcome.refused) !== 'session.invalid') return { error: failureOf(outcome.refused, url) }
      return failed('login.expired', `your log-in at ${url} has ended: hubctl login --url ${url}`)
    }
    const renewed = { ...kept, ...outcome.session }
    // Storing the new tokens may fail, for example in a read-only directory. Then the next command exchanges the old
    // refresh token again.
    await keepLogIn(renewed).catch(() => undefined)
    return renewed
  }
}

/** Sends a command to a hub, as the user of the token. */
export function perform(
  hub: HubAddress,
  command: string,
  { body, token }: { body: object; token: string },
): Promise<HttpResponse | { error: CallFailure }> {
  const path = `/operate/${encodeURIComponent(command)}`
  return send(hub, ['POST', path], { body, headers: { authorization: `Bearer ${token}` } })
}

/** The result in a response to a command, or its failure. */
export function resultOf(response: HttpResponse, url: string): CallResult {
  const { status, body } = response
  return status === 200 && Object.hasOwn(Object(body), 'result')
    ? { result: Object(body).result }
    : { error: failureOf(response, url) }
}

/** Why a hub did not carry out a command, preferably in the hub's words. */
export function failureOf(response: HttpResponse, url: string): CallFailure {
  const { status, body, retryAfter } = response
  const { message } = Object(body)
  if (typeof message !== 'string') {
    // A proxy answers, because the proxy does not reach the hub.
    if ([502, 503, 504].includes(status)) {
      return { code: 'node.unreachable', message: `no hub answers at ${url}: status ${status}` }
    }
    return { code: 'internal', message: `the answer of ${url} is not one of a hub (status ${status})` }
  }
  if (codeOf(response) === 'authorization.permission') {
    return {
      code: 'permission',
      message: `you may not operate the hub at ${url}: your user lacks the permission operate`,
    }
  }
  if (status === 429) return { code: 'busy', message: `too many requests: try again in ${retryAfter} s` }
  if (status === 404) return { code: 'command.unknown', message: `the hub at ${url} has no such command` }
  if (status === 409) return { code: 'refused', message }
  const items = itemsOf(body).map((item) => `${item.path.replace(/^[.]body[.]?/, '')} ${item.message}`.trim())
  return { code: status < 500 ? 'request.invalid' : 'internal', message: items.join('; ') || message }
}

function codeOf({ body }: HttpResponse): string | undefined {
  return itemsOf(body)[0]?.errorCode
}

function itemsOf(body: unknown): { path: string; message: string; errorCode: string }[] {
  const { errors } = Object(body)
  return (Array.isArray(errors) ? errors : []).map((item) => ({
    path: String(Object(item).path),
    message: String(Object(item).message),
    errorCode: String(Object(item).errorCode),
  }))
}

function failed(code: string, message: string): { error: CallFailure } {
  return { error: { code, message } }
}
