import { ClientError } from './errors.ts'
import type { Http, HttpResponse } from './http.ts'
import { isRecord } from './kind.ts'
import { wrongOption } from './options.ts'
import { type Publishable, writeEvent } from './publishable.ts'
import { reasonOf } from './reason.ts'
import { EventRefused, type Remark } from './refusal.ts'
import { readUrl } from './url.ts'

export type HttpsPublisher = ReturnType<typeof createPublisherOverHttps>

export interface HttpsPublisherOptions {
  /** Base URL of the hub, `https://…`. */
  url: string
  email: string
  password: string
  /** CA to trust instead of those of the system: PEM text or, in Node.js, the path of a PEM file. */
  ca?: string | undefined
  /** How long one event is tried while the hub is away or asks to wait, milliseconds. Default: 120,000. */
  patience?: number | undefined
}

/** What became of an event over HTTPS. */
export interface HttpsReport {
  outcome: 'published'
  statuses: { published: number; blocked: number; failed: number }
  /** The id that the hub gave the event. Null in a dry run. */
  id: string | null
  /** The event as the hub has stored it. */
  event: Record<string, unknown>
  warnings?: Remark[]
  dryRun?: true
}

/** The first event of a livestream makes its topic and must be sent again. Each time another one may be missing. */
const maxTopicRounds = 3
/** Pause before a request is sent again where the hub does not say how long, milliseconds. */
const pauseMs = { first: 1_000, longest: 30_000 }
/** A token is renewed so long before it expires, seconds. */
const renewSeconds = 60

interface Login {
  token: string
  refreshToken: string
  /** By the monotonic clock: the clocks of hub and client may differ. */
  until: number
}

/**
 * Publishes over HTTPS, for those who cannot use MQTT: logs in, keeps the token, and sends again what the hub asks to send
 * again (service.md §5.3). Throws `ClientError` for a wrong option.
 */
export function createPublisherOverHttps(options: HttpsPublisherOptions, http: Http) {
  const { email, password, patience = 120_000 } = options
  checkOptions(options)
  /** Events whose outcome is open. */
  const open = new Set<Promise<unknown>>()
  let login: Promise<Login> | undefined
  let isClosed = false

  async function publish(event: Publishable, dryRun: boolean): Promise<HttpsReport> {
    if (isClosed) throw new ClientError('closed')
    const payload = writeEvent(event)
    const path = `events/${encodeURIComponent(nameOf(event))}${dryRun ? '?dryRun=true' : ''}`
    const deadline = performance.now() + patience
    for (let round = 1; ; round++) {
      const verdict = readVerdict(await post(path, payload, deadline))
      const isNew = verdict.errors.some(({ errorCode }) => errorCode === 'topic.created')
      if (isNew && round < maxTopicRounds) continue
      if (verdict.errors.length > 0) {
        throw new EventRefused(verdict.statuses.blocked > 0 ? 'blocked' : 'failed', verdict.errors)
      }
      const { statuses, warnings, event: stored } = verdict
      const id = typeof stored.id === 'string' ? stored.id : null
      return {
        outcome: 'published',
        statuses,
        id,
        event: stored,
        ...(warnings.length > 0 && { warnings }),
        ...(dryRun && { dryRun }),
      }
    }
  }

  /** Posts with a valid token. Throws what the hub has decided: only a 201 comes back. */
  async function post(path: string, payload: string, deadline: number): Promise<HttpResponse> {
    for (let isSecond = false; ; isSecond = true) {
      const { token } = await loggedIn(deadline)
      const response = await patiently(path, payload, deadline, token)
      if (response.status === 201) return response
      const errors = remarksOf(Object(response.body).errors)
      if (response.status === 400) throw new EventRefused('invalid', errors)
      if (response.status === 413) {
        throw new EventRefused('invalid', [
          { path: '.', message: 'must have at most 409600 bytes', errorCode: 'payload.size' },
        ])
      }
      if (response.status !== 401 && response.status !== 403) throw unexpected(path, response)
      const mayHelp = errors.every(({ errorCode }) => errorCode !== 'authorization.permission')
      if (isSecond || !mayHelp) throw new ClientError('login.refused', messageOf(response))
      // The hub knows the token no more, for example because the password was changed.
      login = undefined
    }
  }

  /** Those who publish at the same time share one log-in. */
  async function loggedIn(deadline: number): Promise<Login> {
    const held = login
    const known = await held?.catch(() => undefined)
    if (known && performance.now() < known.until) return known
    // Another event may have begun to log in meanwhile.
    if (login === held) login = renew(known?.refreshToken, deadline)
    return login ?? loggedIn(deadline)
  }

  async function renew(refreshToken: string | undefined, deadline: number): Promise<Login> {
    if (refreshToken !== undefined) {
      const refreshed = await patiently('auth/refresh', JSON.stringify({ refreshToken }), deadline)
      if (refreshed.status === 200) return readLogin(refreshed)
    }
    const response = await patiently('auth/login', JSON.stringify({ email, password }), deadline)
    if (response.status === 200) return readLogin(response)
    if ([400, 401, 403].includes(response.status)) throw new ClientError('login.refused', messageOf(response))
    throw unexpected('auth/login', response)
  }

  /** Posts again while the hub is away (no response, 5xx) or asks to wait (429, 503 with Retry-After). */
  async function patiently(
    path: string,
    body: string,
    deadline: number,
    token?: string,
  ): Promise<HttpResponse> {
    for (let pause: number = pauseMs.first; ; pause = Math.min(pause * 2, pauseMs.longest)) {
      const url = new URL(path, base(options.url)).href
      const response = await http('POST', url, { body, ...(token !== undefined && { token }) }).catch(toError)
      if (!(response instanceof Error) && response.status !== 429 && response.status < 500) return response
      const asked = response instanceof Error ? undefined : response.retryAfter
      // All who wait come back at different times.
      const wait =
        asked !== undefined ? asked * 1000 + Math.random() * 1000 : pause * (0.5 + Math.random() / 2)
      if (isClosed || performance.now() + wait > deadline) throw unexpected(path, response)
      await new Promise((resolve) => setTimeout(resolve, wait))
    }
  }

  function begin(event: Publishable, dryRun: boolean): Promise<HttpsReport> {
    const result = publish(event, dryRun)
    open.add(result)
    const end = () => void open.delete(result)
    result.then(end, end)
    return result
  }

  return {
    /**
     * Sends a track event. Resolves when the hub has published it for all its livestreams. Rejects with `EventRefused`
     * where it was blocked for one or more of them, or with a `ClientError`.
     */
    publish: (event: Publishable) => begin(event, false),
    /** Asks the hub what it would do with an event. Nothing is published. */
    check: (event: Publishable) => begin(event, true),
    /** Takes no more events, and resolves when all that were taken in are settled. They are not tried again. */
    async close(): Promise<void> {
      isClosed = true
      await Promise.allSettled(open)
    },
  }
}

/** The verdict on an event that the hub has judged. Places are those in the event, as over MQTT. */
function readVerdict({ body }: HttpResponse) {
  const { statuses, event, ...rest } = Object(body)
  const { published = 0, blocked = 0, failed = 0 } = isRecord(statuses) ? statuses : {}
  return {
    statuses: { published: countOf(published), blocked: countOf(blocked), failed: countOf(failed) },
    event: isRecord(event) ? event : {},
    errors: remarksOf(rest.errors),
    warnings: remarksOf(rest.warnings),
  }
}

function remarksOf(value: unknown): Remark[] {
  return (Array.isArray(value) ? value : []).filter(isRecord).map(({ path, message, errorCode }) => ({
    path: textOf(path)
      .replace(/^\.body(?=.)/, '')
      .replace(/^\.body$/, '.'),
    message: textOf(message),
    errorCode: textOf(errorCode),
  }))
}

const countOf = (value: unknown) => (typeof value === 'number' ? value : 0)

/** Not every value of JSON can become a text by itself: `{ "toString": 7 }` would throw. */
const textOf = (value: unknown) => (typeof value === 'string' ? value : `${JSON.stringify(value)}`)

function readLogin({ body }: HttpResponse): Login {
  const { token, refreshToken, expiresIn } = Object(body)
  if (typeof token !== 'string' || typeof refreshToken !== 'string' || typeof expiresIn !== 'number') {
    throw new ClientError('hub.unavailable', 'the hub answered a log-in without a token')
  }
  return { token, refreshToken, until: performance.now() + (expiresIn - renewSeconds) * 1000 }
}

function messageOf({ body, status }: HttpResponse): string {
  const { message } = Object(body)
  return typeof message === 'string' ? message : `the hub answered ${status}`
}

function unexpected(path: string, response: HttpResponse | Error): ClientError {
  if (response instanceof Error)
    return new ClientError('hub.unavailable', reasonOf(response), { cause: response })
  return new ClientError(
    'hub.unavailable',
    `${path.split('?')[0]}: ${response.status} ${messageOf(response)}`,
  )
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

function nameOf(event: Publishable): string {
  if (typeof event.event === 'string') return event.event
  const error = { path: '.event', message: 'must be the name of the event', errorCode: 'event.name' }
  throw new EventRefused('invalid', [error])
}

/** A base URL may have a path: the hub then stands behind a proxy. */
const base = (url: string) => (url.endsWith('/') ? url : `${url}/`)

/** Throws `ClientError` with the name of the option and what is expected. */
function checkOptions({ url, email, password, patience = 0 }: HttpsPublisherOptions): void {
  const parsed = readUrl(url)
  if (parsed?.protocol !== 'https:' || parsed.username || parsed.password) {
    wrongOption('url', 'must be https://…, without user and password')
  }
  for (const [name, value] of Object.entries({ email, password })) {
    if (typeof value !== 'string' || value === '') wrongOption(name, 'must be a text')
  }
  if (!(patience >= 0)) wrongOption('patience', 'must be milliseconds from 0 on')
}
