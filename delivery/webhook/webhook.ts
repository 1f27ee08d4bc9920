import { type CurrentCa, madeOf, trustBesides } from '../../config/ca-files.ts'
import { tlsSettings } from '../../listener/tls-settings.ts'
import { startDeadline } from '../../store/deadline.ts'
import { slots } from '../queue/limits.ts'
import type { AttemptOutcome } from '../target.ts'
import { whyNoAnswer } from '../why-no-answer.ts'
import { guardedLookup } from './connection-guard.ts'
import type { Connection, Connections } from './connections.ts'
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
  /** Connections whose outcome is known, and which still get the rest of an answer. */
  const reading = new Set<Connection>()
  const addressOf = createAddresses(allowPrivate)
  let loading: Promise<() => Connections> | undefined
  let connections: Connections | undefined

  /** Loads the HTTP client, which a hub without webhooks does not need. */
  async function load(): Promise<() => Connections> {
    const { openConnections } = await import('./connections.ts')
    // The connections with a CA that was replaced end when they have been unused.
    return madeOf(ca, (trusted) => {
      connections = openConnections({
        lookup: guardedLookup({ allowPrivate, ...(resolve && { resolve }) }),
        // Node ignores TLS settings outside the context.
        secureContext: trustBesides(trusted, tlsSettings),
        maxHeaderBytes,
        idleMs,
        maxUnused: { perOrigin: maxIdlePerEndpoint, total: maxKept },
      })
      return connections
    })
  }

  const post: Post = async (call) => {
    const deadlineAt = performance.now() + call.deadlineMs
    loading ??= load()
    const current = await loading
    const first = await send(current(), call, deadlineAt)
    // `stale`: the server had closed the kept connection, which is no fault of the endpoint.
    const last = first === 'stale' ? await send(current(), call, deadlineAt) : first
    return last === 'stale' ? failed('the connection was closed') : last
  }

  return {
    post,
    close(): void {
      connections?.close()
    },
  }

  function send(
    { take, keep }: Connections,
    call: Parameters<Post>[0],
    deadlineAt: number,
  ): Promise<AttemptOutcome | 'stale'> {
    const { body, headers, token, deadlineMs, signal } = call
    const address = addressOf(call.url)
    if ('wrong' in address) return Promise.resolve(failed(address.wrong))
    if (signal.aborted) return Promise.resolve(failed('the hub is stopping'))
    return new Promise((resolve) => {
      const connection = take(address.origin)
      const late = () => end(failed(`no answer within ${deadlineMs / 1000} s`))
      const endWait = startDeadline(deadlineAt - performance.now(), late)
      const abort = () => end(failed('the hub is stopping'))
      signal.addEventListener('abort', abort, { once: true })
      let idling: NodeJS.Timeout | undefined
      let isSettled = false
      let interimAnswers = 0
      let bytes = 0
      connection.client.dispatch(
        {
          method: 'POST',
          path: address.path,
          headers: {
            ...headers,
            authorization: `Bearer ${token}`,
            'content-type': 'application/json',
            'user-agent': userAgent,
          },
          body,
        },
        {
          onRequestStart: () => undefined,
          onResponseStart(_, status, { 'retry-after': retryAfter }) {
            // 101 ends HTTP, it is no interim answer.
            const isInterim = status < 200 && status !== 101
            if (!isInterim || acknowledging.has(status)) settle(toOutcomeOf(status, retryAfter))
            if (isInterim && ++interimAnswers > maxInterimAnswers)
              end(failed(`sent more than ${maxInterimAnswers} interim answers`))
          },
          onResponseData(_, chunk) {
            bytes += Math.max(chunk.length, leastPieceBytes)
            if (bytes > maxAnswerBytes) connection.end()
          },
          onResponseEnd() {
            ended()
            keep(connection)
          },
          onResponseError(_, last) {
            const { error = last } = connection
            settle(connection.isReused && isBreak(error) ? 'stale' : failed(whyNoAnswer(error)))
            ended()
          },
        },
      )

      function settle(outcome: AttemptOutcome | 'stale'): void {
        if (isSettled) return
        isSettled = true
        resolve(outcome)
        signal.removeEventListener('abort', abort)
        endWait()
        if (reading.size >= maxKept) {
          connection.end()
          return
        }
        reading.add(connection)
        // The outcome is known: the rest of the exchange gets `idleMs` to end.
        idling = setTimeout(connection.end, idleMs)
      }
      function ended(): void {
        clearTimeout(idling)
        reading.delete(connection)
      }
      function end(outcome: AttemptOutcome): void {
        settle(outcome)
        connection.end()
      }
    })
  }
}

/** Where requests for a URL go. */
interface Address {
  origin: string
  path: string
}

/** Returns a function that parses and judges a URL. It does so once for a URL, not at each attempt. */
function createAddresses(allowPrivate: boolean): (url: string) => Address | { wrong: string } {
  const known = new Map<string, Address | { wrong: string }>()
  return (url) => {
    const before = known.get(url)
    if (before) return before
    const parsed = new URL(url)
    const wrong = problemOf(parsed, { allowPrivate })
    const { origin, pathname, search } = parsed
    const address = wrong === undefined ? { origin, path: pathname + search } : { wrong }
    if (known.size >= maxAddresses) known.clear()
    known.set(url, address)
    return address
  }
}

function toOutcomeOf(status: number, retryAfter: string | string[] | undefined): AttemptOutcome {
  if (acknowledging.has(status)) return { result: 'acknowledged', status, reason: null }
  const reason = `answered ${status}`
  if (status === 410) return { result: 'gone', status, reason }
  const isRefusal = status >= 400 && status < 500 && status !== 408 && status !== 429
  if (isRefusal) return { result: 'refused', status, reason }
  const asksToWait = status === 429 || status === 503
  const retryAfterMs = asksToWait ? readRetryAfter([retryAfter].flat()[0]) : undefined
  return { result: 'failed', status, reason, ...(retryAfterMs !== undefined && { retryAfterMs }) }
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

/** Whether a connection broke, and not what came over it was wrong. */
function isBreak(error: Error): boolean {
  const code = 'code' in error ? error.code : undefined
  const isClosed =
    code === 'UND_ERR_SOCKET' && (error.message === 'other side closed' || error.message === 'closed')
  return isClosed || code === 'ECONNRESET' || code === 'EPIPE'
}
