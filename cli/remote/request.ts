import { request } from 'node:https'
import { readRetryAfter } from '../../client/retry-after.ts'
import { codeOf, reasonOf } from '../../telemetry/reason.ts'
import { type CallFailure, Unanswered } from '../connection.ts'

/** A response of a hub. `body` is undefined where it is no JSON. */
export interface HttpResponse {
  status: number
  body: unknown
  /** Seconds after which to ask again. */
  retryAfter: number
  /** The value of the cookie that the response sets. */
  cookie: string | undefined
}

/** Longest wait for a response, milliseconds. A refresh of the feed takes the longest. */
const timeoutMs = 60_000
/** Longest response, bytes. The response of a hub with 100,000 sessions is shorter. */
const maxBytes = 256 * 1024 * 1024

/** A hub. `ca`: the CA that signs its certificate, if the user named one. */
export interface HubAddress {
  url: string
  ca?: string | undefined
}

/** Sends JSON to a hub over HTTPS. Resolves with the response, or with the reason why there is none. */
export async function send(
  { url, ca }: HubAddress,
  [method, path]: readonly ['POST' | 'PUT' | 'DELETE', string],
  sent: { body?: unknown; headers: Record<string, string> },
): Promise<HttpResponse | { error: CallFailure }> {
  const payload = sent.body === undefined ? '' : JSON.stringify(sent.body)
  const headers = {
    ...sent.headers,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(payload),
  }
  try {
    return await new Promise((resolve, reject) => {
      const sending = request(
        new URL(path, url),
        { method, headers, agent: false, ...(ca !== undefined && { ca }) },
        (response) => {
          const chunks: Buffer[] = []
          let bytes = 0
          response.on('data', (chunk: Buffer) => {
            chunks.push(chunk)
            bytes += chunk.length
            if (bytes > maxBytes) response.destroy(new Error(`the answer has more than ${maxBytes} bytes`))
          })
          response.on('error', (error) => reject(new Unanswered(error.message)))
          response.on('end', () =>
            resolve({
              status: response.statusCode ?? 0,
              body: parsed(Buffer.concat(chunks).toString()),
              retryAfter: readRetryAfter(response.headers['retry-after']) ?? 1,
              cookie: /=([^;]+)/.exec(response.headers['set-cookie']?.[0] ?? '')?.[1],
            }),
          )
        },
      )
      sending.setTimeout(timeoutMs, () =>
        sending.destroy(new Error(`no answer within ${timeoutMs / 1000} s`)),
      )
      sending.on('error', (error) => reject(sending.writableFinished ? new Unanswered(error.message) : error))
      sending.end(payload)
    })
  } catch (error) {
    return { error: describe(url, error) }
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function describe(url: string, error: unknown): CallFailure {
  if (error instanceof Unanswered) return error.failure
  const reason = reasonOf(error)
  if (aboutCertificate.test(codeOf(error))) {
    return {
      code: 'node.certificate',
      message: `the certificate of ${url} is not trusted: ${reason}. --ca FILE names the CA that signed it, certs/ca.pem of a node with development certificates`,
    }
  }
  return { code: 'node.unreachable', message: `no hub answers at ${url}: ${reason}` }
}

/** Error codes of OpenSSL, and of the check of the host name. */
const aboutCertificate = /CERT|SELF_SIGNED|UNABLE_TO|ISSUER|ALTNAME|CRL/
