import { type ClientRequest, request as plainRequest } from 'node:http'
import { Agent, request as tlsRequest } from 'node:https'
import { type CurrentCa, madeOf, trustBesides } from '../../../config/ca-files.ts'
import { tlsSettings } from '../../../listener/tls-settings.ts'
import type { HttpRequest, ServerAnswer } from '../../outputs/output.ts'
import { guardedLookup } from '../../webhook/connection-guard.ts'
import { whyNoAnswer } from '../../why-no-answer.ts'

/** So much of the body of an answer is read, bytes. */
const mostRead = 8 * 1024
const maxHeaderBytes = 16 * 1024
/** Maximum number of interim answers (1xx): an endless row would keep the hub parsing. */
const maxInterimAnswers = 10

/** The client for outputs: http and https, no redirects. Each request has a connection of its own. */
export function createHttpSender({ ca, userAgent }: { ca: CurrentCa | undefined; userAgent: string }) {
  // It keeps no connections. Node ignores TLS settings outside the context.
  const agent = madeOf(
    ca,
    (trusted) => new Agent({ keepAlive: false, secureContext: trustBesides(trusted, tlsSettings) }),
  )

  /** Asks once. Rejects with a short reason when there is no whole answer, and with that of `signal` when it aborts. */
  return (request: HttpRequest, signal: AbortSignal): Promise<ServerAnswer> => {
    const { method, url, headers, body } = request
    // The path goes out as it is: URL would resolve segments of dots.
    const { protocol, hostname, port } = new URL(url)
    const path = /^https?:\/\/[^/?]+(.*)$/.exec(url)?.[1] ?? ''
    const options = {
      method,
      hostname: hostname.replace(/^\[|\]$/g, ''),
      // A look-up by the system would occupy a thread that the store needs.
      lookup: guardedLookup({ allowPrivate: true }),
      port: port || (protocol === 'https:' ? 443 : 80),
      path: path.startsWith('/') ? path : `/${path}`,
      maxHeaderSize: maxHeaderBytes,
      headers: {
        'user-agent': userAgent,
        ...headers,
        ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
      },
    }
    return new Promise((resolve, reject) => {
      const sent =
        protocol === 'https:'
          ? tlsRequest({ ...options, agent: agent() })
          : plainRequest({ ...options, agent: false })
      const end = settleOnce(sent, resolve, reject)
      signal.addEventListener('abort', () => end(signal.reason), { once: true })
      sent.end(body)
      sent.on('error', (error) => end(new Error(whyNoAnswer(error))))
    })
  }
}

function settleOnce(
  sent: ClientRequest,
  resolve: (answer: ServerAnswer) => void,
  reject: (error: Error) => void,
) {
  let interim = 0
  sent.on('information', () => {
    if (++interim > maxInterimAnswers) end(new Error(`sent more than ${maxInterimAnswers} interim answers`))
  })
  sent.on('response', (answer) => {
    const chunks: Buffer[] = []
    let size = 0
    const whole = () => end({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString() })
    answer.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      size += chunk.length
      if (size >= mostRead) whole()
    })
    answer.on('end', whole)
    answer.on('error', (error) => end(new Error(whyNoAnswer(error))))
  })
  sent.on('close', () => end(new Error('the connection was closed')))
  return end

  function end(outcome: ServerAnswer | Error): void {
    if (outcome instanceof Error) reject(outcome)
    else resolve(outcome)
    sent.destroy()
  }
}
