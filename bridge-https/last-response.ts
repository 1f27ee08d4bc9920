import { type IncomingMessage, ServerResponse } from 'node:http'
import type { TLSSocket } from 'node:tls'

/** So many bytes behind a last request are dropped. A client that sends more loses its connection. */
const mostBehind = 64 * 1024

/**
 * The response to the last request of a connection, of which Node's HTTP has let go (`HubRequest`). The connection ends
 * with the response, unless it is detached before: then it goes on without anything of HTTP.
 */
export function createLastResponse(request: IncomingMessage, socket: TLSSocket): ServerResponse {
  readToEnd(socket)
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.on('finish', () => {
    if (response.socket) socket.destroySoon()
  })
  return response
}

/** Reads on, because only so the end of the client is noticed. */
function readToEnd(socket: TLSSocket): void {
  const end = () => void socket.destroy()
  let behind = 0
  socket
    .on('data', (bytes: Buffer) => {
      behind += bytes.length
      if (behind > mostBehind) end()
    })
    .on('end', end)
    .on('timeout', end)
    .resume()
}
