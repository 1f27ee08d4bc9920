import type { TLSSocket } from 'node:tls'
import { type Assault, nextChunk } from './attack.ts'

const upgrade = Buffer.from(
  [
    ...['GET /mqtt HTTP/1.1', 'host: localhost', 'connection: upgrade', 'upgrade: websocket'],
    ...['sec-websocket-version: 13', 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=='],
    ...['sec-websocket-protocol: mqtt', '\r\n'],
  ].join('\r\n'),
)

/** Connects a worker, and upgrades the connection to a WebSocket. Undefined if the node refuses. */
export async function openWebSocket(
  assault: Assault,
  port: number,
  worker: number,
): Promise<TLSSocket | undefined> {
  const socket = await assault.connect(port, worker)
  if (!socket) return undefined
  const answer = (await assault.write(socket, upgrade)) ? await nextChunk(socket, 5_000) : undefined
  const status = /^HTTP\/1\.1 (\d{3})/.exec(answer?.toString('latin1') ?? '')?.[1]
  assault.answered(status ?? 'none')
  if (status === '101') return socket
  assault.leave(socket)
  await assault.pause(20)
  return undefined
}
