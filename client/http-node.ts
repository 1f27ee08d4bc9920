import { Agent, request } from 'node:https'
import {
  type Carried,
  fetchHttp,
  type Http,
  headersOf,
  maxResponseBytes,
  patienceMs,
  responseOf,
} from './http.ts'

/** Asks a hub whose certificate `ca` (PEM) vouches for. Without `ca`: the CAs of the system. */
export function httpTrusting(ca: string | undefined): Http {
  // `fetch` of Node.js takes no CA.
  if (ca === undefined) return fetchHttp
  // Its idle connections keep no process alive.
  const agent = new Agent({ keepAlive: true, ca })
  return (method, url, carried = {}) => ask(method, url, carried, agent)
}

function ask(method: string, url: string, carried: Carried, agent: Agent): ReturnType<Http> {
  return new Promise((resolve, reject) => {
    const { body = '' } = carried
    const headers = { ...headersOf(carried), 'content-length': Buffer.byteLength(body) }
    const signal = AbortSignal.timeout(patienceMs)
    const sent = request(url, { method, headers, signal, agent }, (response) => {
      const chunks: Buffer[] = []
      let bytes = 0
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > maxResponseBytes) sent.destroy(new Error('the answer is too long'))
        else chunks.push(chunk)
      })
      response.on('error', reject)
      response.on('end', () => {
        const header = (name: string) => [response.headers[name]].flat()[0]
        resolve(responseOf(response.statusCode ?? 0, Buffer.concat(chunks).toString(), header))
      })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}
