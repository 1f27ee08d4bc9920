import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type ErrorStatus, envelope } from './answer.ts'
import type { RequestLog } from './request-log.ts'

export type RawAnswer = ReturnType<typeof createRawAnswer>

/** Answers a request for which Node has made no HTTP response object, and closes the socket. */
export function createRawAnswer(requestAnswered: RequestLog) {
  return (
    socket: Duplex,
    status: ErrorStatus,
    about: {
      /** The request, if Node could read it. */
      request?: Pick<IncomingMessage, 'method' | 'url'>
      remoteAddress: string
      errors?: Parameters<typeof envelope>[1]
      reason?: string
    },
  ): void => {
    if (!socket.writable) return void socket.destroy()
    const { request, remoteAddress, errors, reason } = about
    const reqId = randomUUID()
    const body = JSON.stringify(envelope(status, errors))
    const lines = [
      `HTTP/1.1 ${status} Refused`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      `X-Request-Id: ${reqId}`,
      "Content-Security-Policy: default-src 'none'",
      'X-Content-Type-Options: nosniff',
      'Cache-Control: no-store',
      'Connection: close',
      '',
      body,
    ]
    socket.end(lines.join('\r\n'), () => socket.destroy())
    requestAnswered({
      reqId,
      route: null,
      status,
      remoteAddress,
      method: request?.method ?? null,
      url: request?.url ?? null,
      ...(reason !== undefined && { reason }),
    })
  }
}
