import { createHash } from 'node:crypto'
import { open, stat } from 'node:fs/promises'
import { mask } from '../../config/mask.ts'
import type { ReadFeed } from './examine.ts'
import { type FeedReason, FeedRefused, refuse } from './refusals.ts'

const redirectStatuses = [301, 302, 303, 307, 308]
const maxRedirects = 5
/** Bytes of a file that are read in one turn of the event loop. */
const bytesPerTurn = 64 * 1024

interface ReadOptions {
  fetchImpl: typeof fetch
  limits: { timeoutMs: number }
  /** Shared memory that the feed is read into, so that the thread that checks it need not get a copy. */
  memory: Uint8Array
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
  const { closing, limits, memory } = how
  if (!isHttps(source)) {
    // To open a pipe without a writer takes for ever, and cannot be aborted.
    if (!(await stat(source)).isFile()) throw new Error(`${source} is no file`)
    return readFile(source, memory, closing)
  }
  const signal = AbortSignal.any([closing, AbortSignal.timeout(limits.timeoutMs)])
  const headers = { accept: 'application/json', ...(etag && { 'if-none-match': etag }) }
  const response = await fetchByTls(source, { headers, signal }, how.fetchImpl)
  const refused = refusalOf(response, etag)
  if (refused || response.status === 304) await response.body?.cancel()
  if (refused) throw new FeedRefused(refuse(...refused))
  if (response.status === 304) return 'unchanged'
  return readAnswer(response, memory)
}

/** Whether a source is a URL, and no path. */
export function isHttps(source: string): boolean {
  return /^https:/i.test(source)
}

/** Reads straight into the memory: a stream would leave as much garbage as the file is large. */
async function readFile(path: string, memory: Uint8Array, closing: AbortSignal): Promise<ReadFeed> {
  const hash = createHash('sha256')
  const file = await open(path)
  try {
    let size = 0
    for (;;) {
      closing.throwIfAborted()
      const part = memory.subarray(size, size + bytesPerTurn)
      // The memory is full: does the file end here?
      const { bytesRead } = await file.read(part.length > 0 ? part : new Uint8Array(1))
      if (bytesRead === 0) return { bytes: memory.subarray(0, size), digest: hash.digest('hex'), etag: null }
      if (part.length === 0) throw tooLarge('the file', memory)
      hash.update(part.subarray(0, bytesRead))
      size += bytesRead
    }
  } finally {
    await file.close()
  }
}

async function readAnswer({ body, headers }: Response, memory: Uint8Array): Promise<ReadFeed> {
  const hash = createHash('sha256')
  let size = 0
  for await (const chunk of body ?? []) {
    if (size + chunk.length > memory.length) throw tooLarge('the answer', memory)
    hash.update(chunk)
    memory.set(chunk, size)
    size += chunk.length
  }
  return { bytes: memory.subarray(0, size), digest: hash.digest('hex'), etag: headers.get('etag') }
}

function tooLarge(what: string, { length }: Uint8Array): FeedRefused {
  return new FeedRefused(refuse('too-large', `${what} is larger than ${length} bytes`))
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
