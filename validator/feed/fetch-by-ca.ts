import { Agent, request } from 'node:https'
import { Readable } from 'node:stream'
import { type CurrentCa, trustBesides, withCaHint } from '../../config/ca-files.ts'

/**
 * Returns a `fetch` for the feed that trusts a CA besides the usual ones: the platform's `fetch` takes no CA. It reads
 * https URLs, follows no redirects, and knows no compression but gzip. `ca` undefined: the platform's `fetch`. An error about
 * a CA that is not trusted names the setting.
 */
export function createFeedFetch(ca: CurrentCa | undefined): typeof fetch {
  const get: typeof fetch = ca ? (url, init) => getByCa(String(url), init, ca()) : fetch
  return (url, init) =>
    get(url, init).catch((error: unknown) => {
      if (!(error instanceof Error)) throw error
      const { cause = error } = error
      const text = cause instanceof Error ? cause.message : ''
      const hint = withCaHint(text, 'feed')
      throw hint === text ? error : new Error(error.message, { cause: new Error(hint, { cause }) })
    })
}

function getByCa(url: string, init: RequestInit = {}, ca: string): Promise<Response> {
  const { headers, signal } = init
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      headers: { ...Object.fromEntries(new Headers(headers)), 'accept-encoding': 'gzip' },
      // A connection that another CA has secured is not used again.
      agent: new Agent({ secureContext: trustBesides(ca) }),
      ...(signal && { signal }),
    })
    sent.on('error', (cause) => reject(new Error('fetch failed', { cause })))
    sent.on('response', (answer) => {
      const { statusCode: status = 500, headers } = answer
      const hasBody = ![204, 205, 304].includes(status)
      if (!hasBody) answer.resume()
      // `Response` takes no others, and would throw here, where nobody catches it.
      if (status < 200 || status > 599) {
        answer.destroy()
        reject(new Error(`the source answered ${status}`))
        return
      }
      const body = hasBody ? new Response(Readable.toWeb(answer) as ReadableStream).body : null
      const fields = Object.entries(headers).flatMap(([name, value]) =>
        typeof value === 'string' ? [[name, value] as [string, string]] : [],
      )
      // Servers of stored files compress whatever is asked for, such as S3.
      const isGzip = /^(x-)?gzip$/i.test(headers['content-encoding'] ?? '')
      const text = isGzip && body ? body.pipeThrough(new DecompressionStream('gzip')) : body
      resolve(new Response(text, { status, headers: fields }))
    })
    sent.end()
  })
}
