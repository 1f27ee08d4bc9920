import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { mask } from '../../config/mask.ts'
import type { ReadFeed } from './examine.ts'
import { type FeedReason, FeedRefused, refuse } from './refusals.ts'

const redirectStatuses = [301, 302, 303, 307, 308]
const maxRedirects = 5
/** Bytes of a block of memory that a feed is read into. */
const blockBytes = 1024 * 1024

interface ReadOptions {
  fetchImpl: typeof fetch
  limits: { timeoutMs: number; maxBytes: number }
  closing: AbortSignal
}

/**
 * Reads a file or an https URL. Resolves with `unchanged` if the feed still has this `etag`. Rejects with a reason. Does
 * not look into the feed: every chunk takes the event loop less than a millisecond.
 */
export async function readSource(
  source: string,
  etag: string | null | undefined,
  how: ReadOptions,
): Promise<ReadFeed | 'unchanged'> {
  const { closing, limits } = how
  if (!isHttps(source)) {
    // To open a pipe without a writer takes for ever, and cannot be aborted.
    if (!(await stat(source)).isFile()) throw new Error(`${source} is no file`)
    return collect(createReadStream(source, { signal: closing }), 'the file', null, limits.maxBytes)
  }
  const signal = AbortSignal.any([closing, AbortSignal.timeout(limits.timeoutMs)])
  const headers = { accept: 'application/json', ...(etag && { 'if-none-match': etag }) }
  const response = await fetchByTls(source, { headers, signal }, how.fetchImpl)
  const refused = refusalOf(response, etag)
  if (refused || response.status === 304) await response.body?.cancel()
  if (refused) throw new FeedRefused(refuse(...refused))
  if (response.status === 304) return 'unchanged'
  return collect(response.body ?? [], 'the answer', response.headers.get('etag'), limits.maxBytes)
}

/** Whether a source is a URL, and no path. */
export function isHttps(source: string): boolean {
  return /^https:/i.test(source)
}

/** Reads into shared memory, so that the thread that parses the feed need not get a copy. */
async function collect(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  what: string,
  etag: string | null,
  maxBytes: number,
): Promise<ReadFeed> {
  const hash = createHash('sha256')
  const blocks: Uint8Array[] = []
  let size = 0
  let block: Uint8Array = new Uint8Array(0)
  let filled = 0
  for await (const chunk of chunks) {
    size += chunk.length
    if (size > maxBytes)
      throw new FeedRefused(refuse('too-large', `${what} is larger than ${maxBytes} bytes`))
    hash.update(chunk)
    for (let from = 0; from < chunk.length; ) {
      if (filled === block.length) {
        block = new Uint8Array(new SharedArrayBuffer(blockBytes))
        blocks.push(block)
        filled = 0
      }
      const part = chunk.subarray(from, from + block.length - filled)
      block.set(part, filled)
      filled += part.length
      from += part.length
    }
  }
  if (blocks.length > 0) blocks[blocks.length - 1] = block.subarray(0, filled)
  return { blocks, digest: hash.digest('hex'), etag }
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

function refusalOf(
  { ok, status, headers }: Response,
  etag: string | null | undefined,
): [reason: FeedReason, problem: string] | undefined {
  // RFC 9110 §15.4.5: 304 answers a request with a condition only.
  if (status === 304 && !etag)
    return ['not-modified', 'the source answered 304, but was not asked for changes']
  if (status === 206) return ['partial', 'the source answered 206, a part that was not asked for']
  if (!ok && status !== 304) return ['source', `the source answered ${status}`]
  if (hasNextPage(headers.get('link')))
    return ['partial', 'a header Link leads to a next page, expected all livestreams']
  return undefined
}

/** Whether a header `Link` has a link with the relation `next` (RFC 8288 §3.3: several, in any case). */
function hasNextPage(header: string | null): boolean {
  return [...(header ?? '').matchAll(partsOfLink)].some(([, name, quoted, token]) => {
    const relations = (quoted ?? token ?? '').toLowerCase().split(/\s+/)
    return name?.toLowerCase() === 'rel' && relations.includes('next')
  })
}

/**
 * The targets and the parameters of a header `Link`: so nothing inside of a target, or of another parameter, is taken
 * for a relation. A quotation that does not end counts as one: then no place is looked at twice.
 */
const partsOfLink = /<[^<>]*>|;\s*([^\s;,=<>"]+)\s*=\s*(?:"((?:[^"\\]|\\.?)*)"?|([^\s;,"]*))/g
