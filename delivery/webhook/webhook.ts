import type { ClientRequest, IncomingMessage } from 'node:http'
import { Agent, type AgentOptions, type RequestOptions, request } from 'node:https'
import type { Duplex } from 'node:stream'
import { createSecureContext } from 'node:tls'
import { urlToHttpOptions } from 'node:url'
import { type CurrentCa, trustBesides } from '../../config/ca-files.ts'
import { tlsSettings } from '../../listener/tls-settings.ts'
import { startDeadline } from '../../store/deadline.ts'
import { slots } from '../queue/limits.ts'
import type { AttemptOutcome } from '../target.ts'
import { whyNoAnswer } from '../why-no-answer.ts'
import { guardedLookup } from './connection-guard.ts'
import { problemOf, type Resolve } from './webhook-url.ts'

/** Longest body of an answer, bytes. The hub reads and ignores the body, to reuse the connection. */
const maxAnswerBytes = 64 * 1024
/** A piece of a body counts as at least this many bytes. Handling a smaller piece costs the hub as much. */
const leastPieceBytes = 64
/** Maximum number of interim answers (1xx): an endless row would keep the hub parsing. */
const maxInterimAnswers = 10
/** Maximum size of the header fields of an answer, bytes. */
const maxHeaderBytes = 16 * 1024
/** Lifetime of an unused connection, milliseconds: most servers keep it longer. */
const idleMs = 4_000
/** As many as may deliver there at once: a server of many webhooks then needs no new TLS handshakes. */
const maxIdlePerEndpoint = slots.healthy.perEndpoint

/** Parsed URLs that are kept. */
const maxAddresses = 10_000

/** Statuses that acknowledge a message (design.md §10). 102 is an interim answer. */
const acknowledging: ReadonlySet<number> = new Set([102, 200, 201, 202, 204])

/** Makes one attempt to post JSON to a webhook. Never rejects. */
export type Post = (call: {
  url: string
  body: Buffer
  headers?: Record<string, string>
  token: string
  deadlineMs: number
  signal: AbortSignal
}) => Promise<AttemptOutcome>

/**
 * The client for webhooks: https only, no redirects, no private addresses. It limits time and bytes, and keeps
 * connections alive.
 */
export function createWebhooks(options: {
  allowPrivate: boolean
  /** A CA that the client trusts besides the usual ones, PEM. */
  ca?: CurrentCa | undefined
  /** Value of the `User-Agent` header, like `now-playing-hub/3.0.0`. */
  userAgent: string
  resolve?: Resolve
  /** Maximum number of unused connections, and of connections that read the rest of an answer. */
  maxKept?: number
}) {
  const { allowPrivate, ca, userAgent, resolve, maxKept = Infinity } = options
  const settledRequests = new Set<ClientRequest>()
  const addressOf = createAddresses(allowPrivate)
  let trusted = ca?.()
  let agent = openAgent()

  function openAgent(): KeepingAgent {
    return new KeepingAgent(maxKept, {
      keepAlive: true,
      maxFreeSockets: maxIdlePerEndpoint,
      timeout: idleMs,
      scheduling: 'lifo',
      lookup: guardedLookup({ allowPrivate, ...(resolve && { resolve }) }),
      // Node ignores TLS settings outside the context.
      secureContext:
        trusted === undefined ? createSecureContext(tlsSettings) : trustBesides(trusted, tlsSettings),
    })
  }

  /** Returns another agent after the CA was replaced. Connections of the old one end when they have been unused. */
  function currentAgent(): KeepingAgent {
    const now = ca?.()
    if (now === trusted) return agent
    trusted = now
    agent = openAgent()
    return agent
  }

  const post: Post = async (call) => {
    const deadlineAt = performance.now() + call.deadlineMs
    const first = await send(call, deadlineAt)
    // `stale`: the server had closed the kept connection, which is no fault of the endpoint.
    return first === 'stale' ? toOutcome(await send(call, deadlineAt)) : first
  }

  return {
    post,
    close(): void {
      agent.destroy()
    },
  }

  function send(call: Parameters<Post>[0], deadlineAt: number): Promise<AttemptOutcome | 'stale'> {
    const { body, headers, token, deadlineMs, signal } = call
    const address = addressOf(call.url)
    if ('wrong' in address) return Promise.resolve(failed(address.wrong))
    const { to, host } = address
    if (signal.aborted) return Promise.resolve(failed('the hub is stopping'))
    return new Promise((resolve) => {
      const sent = request({
        ...to,
        method: 'POST',
        agent: currentAgent(),
        maxHeaderSize: maxHeaderBytes,
        // Of a list, Node checks each field once. It then adds no `host`.
        headers: Object.entries({
          host,
          ...headers,
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'content-length': String(body.length),
          'user-agent': userAgent,
        }).flat(),
      })
      const late = () => end(failed(`no answer within ${deadlineMs / 1000} s`))
      const endWait = startDeadline(deadlineAt - performance.now(), late)
      let idling: NodeJS.Timeout | undefined
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
      sent.on('error', (error) => end(isStale(sent, error) ? 'stale' : failed(whyNoAnswer(error))))
      sent.on('close', () => {
        settle(failed('the connection was closed'))
        clearTimeout(idling)
        settledRequests.delete(sent)
      })
      sent.end(body)

      let isSettled = false
      function settle(outcome: AttemptOutcome | 'stale'): void {
        if (isSettled) return
        isSettled = true
        resolve(outcome)
        signal.removeEventListener('abort', abort)
        endWait()
        if (settledRequests.size >= maxKept) {
          sent.destroy()
          return
        }
        settledRequests.add(sent)
        // The outcome is known: the rest of the exchange gets `idleMs` to end.
        idling = setTimeout(() => sent.destroy(), idleMs)
      }
      function end(outcome: AttemptOutcome | 'stale'): void {
        settle(outcome)
        sent.destroy()
      }
    })
  }
}

/** Where requests for a URL go. `host`: value of their `host` header. */
interface Address {
  to: Pick<RequestOptions, 'hostname' | 'port' | 'path'>
  host: string
}

/** Returns a function that parses and judges a URL. It does so once for a URL, not at each attempt. */
function createAddresses(allowPrivate: boolean): (url: string) => Address | { wrong: string } {
  const known = new Map<string, Address | { wrong: string }>()
  return (url) => {
    const before = known.get(url)
    if (before) return before
    const parsed = new URL(url)
    const wrong = problemOf(parsed, { allowPrivate })
    const { hostname, port, path } = urlToHttpOptions(parsed)
    const address = wrong === undefined ? { to: { hostname, port, path }, host: parsed.host } : { wrong }
    if (known.size >= maxAddresses) known.clear()
    known.set(url, address)
    return address
  }
}

/** Keeps at most `most` unused connections in all, however many endpoints there are. */
class KeepingAgent extends Agent {
  readonly #most: number
  readonly #unused = new Set<Duplex>()

  constructor(most: number, options: AgentOptions) {
    super(options)
    this.#most = most
  }

  override createConnection(...args: Parameters<Agent['createConnection']>): Duplex | null | undefined {
    const socket = super.createConnection(...args)
    socket?.once('close', () => this.#unused.delete(socket))
    return socket
  }

  override keepSocketAlive(socket: Duplex): boolean {
    if (this.#unused.size >= this.#most) return false
    const isKept: unknown = super.keepSocketAlive(socket)
    if (isKept === false) return false
    this.#unused.add(socket)
    return true
  }

  override reuseSocket(socket: Duplex, request: ClientRequest): void {
    this.#unused.delete(socket)
    super.reuseSocket(socket, request)
  }
}

function toOutcomeOf(status: number, answer?: IncomingMessage): AttemptOutcome {
  if (acknowledging.has(status)) return { result: 'acknowledged', status, reason: null }
  const reason = `answered ${status}`
  if (status === 410) return { result: 'gone', status, reason }
  const isRefusal = status >= 400 && status < 500 && status !== 408 && status !== 429
  if (isRefusal) return { result: 'refused', status, reason }
  const asksToWait = status === 429 || status === 503
  const retryAfterMs = asksToWait ? readRetryAfter(answer?.headers['retry-after']) : undefined
  return { result: 'failed', status, reason, ...(retryAfterMs !== undefined && { retryAfterMs }) }
}

function toOutcome(sent: AttemptOutcome | 'stale'): AttemptOutcome {
  return sent === 'stale' ? failed('the connection was closed') : sent
}

function failed(reason: string): AttemptOutcome {
  return { result: 'failed', status: null, reason }
}

/** Longest `Retry-After` that is read, seconds. */
const mostRetryAfter = 999_999_999

/** Reads `Retry-After`, which has seconds or a date (RFC 9110 §10.2.3). Returns milliseconds from now. */
function readRetryAfter(value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  if (/^\d+$/.test(value)) return Math.min(Number(value), mostRetryAfter) * 1000
  const at = Date.parse(value)
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now())
}

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
