import { readFile } from 'node:fs/promises'
import { mask } from '../../config/mask.ts'

export interface ReadFeed {
  text: string
  /** The ETag of the response; null for a file. */
  etag: string | null
}

const redirectStatuses = [301, 302, 303, 307, 308]
const maxRedirects = 5

/** Reads a file or an https URL. Resolves with `unchanged` if the feed still has this `etag`. Rejects with a reason. */
export async function readSource(
  source: string,
  etag: string | null | undefined,
  how: { fetchImpl: typeof fetch; limits: { timeoutMs: number; maxBytes: number }; closing: AbortSignal },
): Promise<ReadFeed | 'unchanged'> {
  if (!isHttps(source)) return { text: await readFile(source, 'utf8'), etag: null }
  const signal = AbortSignal.any([how.closing, AbortSignal.timeout(how.limits.timeoutMs)])
  const headers = { accept: 'application/json', ...(etag && { 'if-none-match': etag }) }
  const response = await fetchByTls(source, { headers, signal }, how.fetchImpl)
  return readResponse(response, how.limits.maxBytes)
}

/**
 * Follows redirects from https to https. Over a hop without TLS, an attacker could change the owners of livestreams.
 */
async function fetchByTls(source: string, init: RequestInit, fetchImpl: typeof fetch): Promise<Response> {
  let url = source
  for (let redirects = 0; redirects <= maxRedirects; redirects++) {
    const response = await fetchImpl(url, { ...init, redirect: 'manual' })
    const location = redirectStatuses.includes(response.status) && response.headers.get('location')
    if (!location) return response
    await response.body?.cancel()
    if (!URL.canParse(location, url)) throw new Error('redirected to something that is no URL')
    url = new URL(location, url).href
    if (!isHttps(url)) throw new Error(`redirected to ${mask('feed', url)}, which is not https`)
  }
  throw new Error(`redirected more than ${maxRedirects} times`)
}

async function readResponse(response: Response, maxBytes: number): Promise<ReadFeed | 'unchanged'> {
  const refusal = refusalOf(response)
  if (response.status === 304 || refusal !== undefined) await response.body?.cancel()
  if (refusal !== undefined) throw new Error(refusal)
  if (response.status === 304) return 'unchanged'
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    if (size > maxBytes) throw new Error(`the answer is larger than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return { text: Buffer.concat(chunks).toString('utf8'), etag: response.headers.get('etag') }
}

function refusalOf({ ok, status }: Response): string | undefined {
  return ok || status === 304 ? undefined : `the source answered ${status}`
}

export function isHttps(source: string): boolean {
  return /^https:/i.test(source)
}
