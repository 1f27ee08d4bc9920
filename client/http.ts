import { readRetryAfter } from './retry-after.ts'

/** A response to a request. `body`: what JSON it was, else undefined. */
export interface HttpResponse {
  status: number
  body: unknown
  /** The headers `retry-after`, seconds from 1 on, and `date`, milliseconds since the epoch, where they can be read. */
  retryAfter: number | undefined
  date: number | undefined
}

/** What a request carries. `body`: JSON; `token`: goes into the header `Authorization`. */
export interface Carried {
  body?: string
  token?: string
}

/** Asks a hub. Rejects if there is no response within 15 seconds, or if the response is longer than a megabyte. */
export type Http = (method: 'GET' | 'POST', url: string, carried?: Carried) => Promise<HttpResponse>

export const patienceMs = 15_000
export const maxResponseBytes = 1_000_000

/** Asks with `fetch`, as browsers do, and Node.js where no CA of its own is needed. */
export const fetchHttp: Http = async (method, url, carried = {}) => {
  const response = await fetch(url, {
    method,
    headers: headersOf(carried),
    ...(carried.body !== undefined && { body: carried.body }),
    signal: AbortSignal.timeout(patienceMs),
    redirect: 'error',
  })
  const chunks: Uint8Array[] = []
  let bytes = 0
  const reader = response.body?.getReader()
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
    if (done || value === undefined) break
    bytes += value.byteLength
    if (bytes > maxResponseBytes) throw new Error('the answer is too long')
    chunks.push(value)
  }
  return responseOf(response.status, await new Blob(chunks).text(), (name) => response.headers.get(name))
}

export function headersOf({ body, token }: Carried): Record<string, string> {
  return {
    accept: 'application/json',
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  }
}

export function responseOf(
  status: number,
  text: string,
  header: (name: string) => string | null | undefined,
): HttpResponse {
  const date = Date.parse(header('date') ?? '')
  return {
    status,
    body: parse(text),
    retryAfter: readRetryAfter(header('retry-after')),
    date: Number.isNaN(date) ? undefined : date,
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // a response of a proxy, or none
  }
}
