import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import { ensureDevelopmentCertificates } from '../certs/development.ts'

/** One push request that the receiver got. */
export interface Pushed {
  path: string
  headers: IncomingHttpHeaders
  body: {
    message: { data: string; attributes: Record<string, string>; messageId: string; publishTime: string }
    subscription: string
  }
  /** The body as it came. */
  raw: Buffer
  /** The event in `data`, decoded. */
  event: Record<string, unknown>
  /** When the push arrived: milliseconds of `performance.now()`. */
  at: number
  /** Port of the client: the same for requests of one connection. */
  clientPort: number | undefined
}

/** How the receiver answers a push: returns a status, or answers by itself and returns undefined. */
export type Behaviour = (
  pushed: Pushed,
  response: ServerResponse,
  request: IncomingMessage,
) => number | undefined

export type Receiver = Awaited<ReturnType<typeof startReceiver>>

/** A webhook receiver on localhost with a certificate of its own CA (`ca`, for HUB_PUSH_CA). */
export async function startReceiver(t: Test, home: string, options: { port?: number } = {}) {
  const tls = await ensureDevelopmentCertificates(join(home, 'receiver-certs'), [])
  const received: Pushed[] = []
  let behaviour: Behaviour = () => 201
  const waiting = new Set<() => void>()
  const server = createServer(
    { key: readFileSync(tls.key), cert: readFileSync(tls.cert) },
    async (request, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk)
      const raw = Buffer.concat(chunks)
      const body = JSON.parse(raw.toString())
      const data = body.message?.data
      const pushed: Pushed = {
        path: request.url ?? '',
        headers: request.headers,
        raw,
        body,
        event: data === undefined ? body : JSON.parse(Buffer.from(data, 'base64').toString()),
        at: performance.now(),
        clientPort: request.socket.remotePort,
      }
      const status = behaviour(pushed, response, request)
      received.push(pushed)
      for (const check of waiting) check()
      if (status !== undefined) response.writeHead(status).end()
    },
  )
  server.keepAliveTimeout = 30_000
  server.listen(options.port ?? 0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  let closed = false
  const close = async () => {
    if (closed) return
    closed = true
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  t.teardown(close)

  return {
    port,
    ca: tls.ca,
    cert: tls.cert,
    key: tls.key,
    url: (path = '/hook') => `https://localhost:${port}${path}`,
    /** All pushes that arrived, acknowledged or not. */
    received,
    /** Sets how the receiver answers from now on. */
    behave(next: Behaviour): void {
      behaviour = next
    },
    /** Resolves when `isDone` holds for the pushes that have arrived. */
    until(isDone: (received: readonly Pushed[]) => boolean): Promise<void> {
      return new Promise((resolve) => {
        const check = () => {
          if (!isDone(received)) return
          waiting.delete(check)
          resolve()
        }
        waiting.add(check)
        check()
      })
    },
    close,
  }
}

/** HUB_ variables of a node that pushes to this receiver. */
export function pushing(receiver: Receiver): Record<string, string> {
  return { HUB_PUSH_ALLOW_PRIVATE: 'true', HUB_PUSH_CA: receiver.ca ?? '' }
}

/** The body of a request for a webhook of a livestream. */
export function webhookBody(url: string, topic: string, fields: object = {}) {
  return { type: 'PUBSUB', method: 'PUSH', url, contact: 'a@b.example', topic, ...fields }
}
