import type { ClientRequest, IncomingMessage } from 'node:http'
import { Agent, type AgentOptions, request } from 'node:https'
import type { Duplex } from 'node:stream'
import { createSecureContext, rootCertificates } from 'node:tls'
import { tlsSettings } from '../../listener/tls-settings.ts'
import type { Outcome } from '../target.ts'
import { guardedLookup } from './connection-guard.ts'
import { problemOf, type Resolve } from './webhook-url.ts'

/**
 * The hub reads at most this many bytes of an answer's body. It ignores the body, but can reuse the connection only
 * after it has read the body.
 */
const maxAnswerBytes = 64 * 1024
/** A piece of a body counts as at least this many bytes, because a piece of one byte costs the hub as much as these. */
const leastPieceBytes = 64
/**
 * The hub reads at most this many interim answers (1xx) to a message. They are no part of the body, and an endless row
 * of them would keep the hub parsing.
 */
const maxInterimAnswers = 10
/** Maximum size of the header fields of an answer, bytes. */
const maxHeaderBytes = 16 * 1024
/** The hub keeps an unused connection for this time, milliseconds: shorter than most servers keep it. */
const idleMs = 4_000
const maxIdlePerEndpoint = 4

/** Statuses that acknowledge a message (design.md §10). 102 is an interim answer, sent before the final one. */
const acknowledging: ReadonlySet<number> = new Set([102, 200, 201, 202, 204])

/** Makes one attempt to post JSON to a webhook. Never rejects. */
export type Post = (call: {
  url: string
  body: Buffer
  headers?: Record<string, string>
  token: string
  deadlineMs: number
  signal: AbortSignal
}) => Promise<Outcome>

/**
 * The client for webhooks. It uses https only, follows no redirects, and connects to no private address (checked on the
 * connection itself). It limits time and bytes, and keeps connections alive.
 */
export function createWebhooks(options: {
  allowPrivate: boolean
  /** A CA that the client trusts besides the usual ones, PEM. */
  ca?: string
  /** Value of the `User-Agent` header, like `now-playing-hub/3.0.0`. */
  userAgent: string
  resolve?: Resolve
  /**
   * Maximum number of unused connections. Also the maximum number of connections that still read an answer whose status
   * is known.
   */
  maxKept?: number
}) {
  const { allowPrivate, ca, userAgent, resolve, maxKept = Infinity } = options
  const settledRequests = new Set<ClientRequest>()
  const agent = new KeepingAgent(maxKept, {
    keepAlive: true,
    maxFreeSockets: maxIdlePerEndpoint,
    timeout: idleMs,
    scheduling: 'lifo',
    lookup: guardedLookup({ allowPrivate, ...(resolve && { resolve }) }),
    // All connections share one context, so the CAs are parsed once. Node ignores TLS settings outside the context.
    secureContext: createSecureContext({
      ...tlsSettings,
      ...(ca !== undefined && { ca: [...rootCertificates, ca] }),
    }),
  })

  const post: Post = async (call) => {
    const deadlineAt = performance.now() + call.deadlineMs
    const first = await send(call, deadlineAt)
    // Try again: the server closed the kept connection before it saw the request, which is no fault of the endpoint.
    return first === 'stale' ? toOutcome(await send(call, deadlineAt)) : first
  }

  return {
    post,
    close(): void {
      agent.destroy()
    },
  }

  function send(call: Parameters<Post>[0], deadlineAt: number): Promise<Outcome | 'stale'> {
    const { body, headers, token, deadlineMs, signal } = call
    const url = new URL(call.url)
    const wrong = problemOf(url, { allowPrivate })
    if (wrong !== undefined) return Promise.resolve(failed(wrong))
    if (signal.aborted) return Promise.resolve(failed('the hub is stopping'))
    return new Promise((resolve) => {
      const sent = request(url, {
        method: 'POST',
        agent,
        maxHeaderSize: maxHeaderBytes,
        headers: {
          ...headers,
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'content-length': body.length,
          'user-agent': userAgent,
        },
      })
      const late = () => end(failed(`no answer within ${deadlineMs / 1000} s`))
      let timer = setTimeout(late, deadlineAt - performance.now())
      const abort = () => end(failed('the hub is stopping'))
      signal.addEventListener('abort', abort, { once: true })
      let interimAnswers = 0
      sent.on('information', ({ statusCode }) => {
        interimAnswers++
        if (acknowledging.has(statusCode)) settle(toOutcomeOf(statusCode))
        if (interimAnswers > maxInterimAnswers)
          end(failed(`sent more than ${maxInterimAnswers} interim answers`))
      })
      sent.on('response', (answer) => {
        settle(toOutcomeOf(answer.statusCode ?? 0, answer))
        discard(answer, sent)
      })
      sent.on('error', (error) => end(isStale(sent, error) ? 'stale' : failed(describe(error))))
      sent.on('close', () => {
        settle(failed('the connection was closed'))
        clearTimeout(timer)
        settledRequests.delete(sent)
      })
      sent.end(body)

      let isSettled = false
      function settle(outcome: Outcome | 'stale'): void {
        if (isSettled) return
        isSettled = true
        resolve(outcome)
        signal.removeEventListener('abort', abort)
        // The outcome is known. The rest of the exchange must end soon, so that the connection can be used again.
        clearTimeout(timer)
        if (settledRequests.size >= maxKept) {
          sent.destroy()
          return
        }
        settledRequests.add(sent)
        timer = setTimeout(() => sent.destroy(), idleMs)
      }
      function end(outcome: Outcome | 'stale'): void {
        settle(outcome)
        sent.destroy()
      }
    })
  }
}

/** Keeps at most `most` unused connections in all, however many endpoints there are. */
class KeepingAgent extends Agent {
  readonly #most: number

  constructor(most: number, options: AgentOptions) {
    super(options)
    this.#most = most
  }

  override keepSocketAlive(socket: Duplex): boolean {
    const unused = Object.values(this.freeSockets).reduce((sum, sockets) => sum + (sockets?.length ?? 0), 0)
    if (unused >= this.#most) return false
    const isKept: unknown = super.keepSocketAlive(socket)
    return isKept !== false
  }
}

function toOutcomeOf(status: number, answer?: IncomingMessage): Outcome {
  if (acknowledging.has(status)) return { result: 'acknowledged', status, reason: null }
  const reason = `answered ${status}`
  if (status === 410) return { result: 'gone', status, reason }
  const isRefusal = status >= 400 && status < 500 && status !== 408 && status !== 429
  if (isRefusal) return { result: 'refused', status, reason }
  const asksToWait = status === 429 || status === 503
  const retryAfterMs = asksToWait ? readRetryAfter(answer?.headers['retry-after']) : undefined
  return { result: 'failed', status, reason, ...(retryAfterMs !== undefined && { retryAfterMs }) }
}

function toOutcome(sent: Outcome | 'stale'): Outcome {
  return sent === 'stale' ? failed('the connection was closed') : sent
}

function failed(reason: string): Outcome {
  return { result: 'failed', status: null, reason }
}

/** Reads `Retry-After`, which has seconds or a date (RFC 9110 §10.2.3). Returns milliseconds from now. */
function readRetryAfter(value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000
  const at = Date.parse(value)
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now())
}

/** Reads the rest of an answer. Closes the connection if the answer is longer than `maxAnswerBytes`. */
function discard(answer: IncomingMessage, sent: ClientRequest): void {
  let bytes = 0
  answer.on('data', (chunk: Buffer) => {
    bytes += Math.max(chunk.length, leastPieceBytes)
    if (bytes > maxAnswerBytes) sent.destroy()
  })
  answer.on('error', () => undefined) // the status has decided the outcome already
}

function isStale(sent: ClientRequest, error: Error): boolean {
  return sent.reusedSocket && 'code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE')
}

/** In the message of an OpenSSL error, the reason stands behind codes and a function, and before a file and a line. */
const openSslError = /:error:[0-9A-F]+:[^:]*:[^:]*:([^:]+):/

/** Why no answer came: a short text without internal data of the hub. */
function describe(error: Error): string {
  const [, tlsReason] = openSslError.exec(error.message) ?? []
  if (tlsReason !== undefined) return `TLS: ${tlsReason}`
  const code = 'code' in error && typeof error.code === 'string' ? `${error.code}: ` : ''
  return `${code}${error.message}`.slice(0, 200)
}
