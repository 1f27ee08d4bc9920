import { request } from 'node:https'
import { answerOf, fetchHttp, type Http, maxAnswerBytes, patienceMs } from './http.ts'

/** Asks a hub whose certificate `ca` (PEM) vouches for. Without `ca`: the CAs of the system. */
export function httpTrusting(ca: string | undefined): Http {
  // `fetch` of Node.js takes no CA.
  return ca === undefined ? fetchHttp : (method, url) => ask(method, url, ca)
}

function ask(method: string, url: string, ca: string): ReturnType<Http> {
  return new Promise((resolve, reject) => {
    const headers = { accept: 'application/json', 'content-length': 0 }
    const signal = AbortSignal.timeout(patienceMs)
    const sent = request(url, { method, headers, ca, signal, agent: false }, (response) => {
      const chunks: Buffer[] = []
      let bytes = 0
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > maxAnswerBytes) sent.destroy(new Error('the answer is too long'))
        else chunks.push(chunk)
      })
      response.on('error', reject)
      response.on('end', () => {
        const header = (name: string) => [response.headers[name]].flat()[0]
        resolve(answerOf(response.statusCode ?? 0, Buffer.concat(chunks).toString(), header))
      })
    })
    sent.on('error', reject)
    sent.end()
  })
}
