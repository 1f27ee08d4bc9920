import type { Duplex } from 'node:stream'

/** How long a refused or closed peer may take to read its last bytes, milliseconds. */
const patienceMs = 1000
/** Maximum number of bytes that the peer may still send in this time. The hub discards them. */
const lastBytes = 64 * 1024
/**
 * Maximum number of pieces in which the `lastBytes` may arrive. A piece of one byte costs the node as much as a piece
 * of a kilobyte.
 */
const lastPieces = 128

/**
 * Ends a socket, and goes on reading for a moment. Closing a socket with unread input would reset the TCP connection,
 * and the peer could lose the last packets that the hub sent.
 */
export function endGently(socket: Duplex): void {
  let bytes = 0
  let pieces = 0
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    pieces++
    if (bytes > lastBytes || pieces > lastPieces) socket.destroy()
  })
  socket.resume()
  socket.end()
  setTimeout(() => socket.destroy(), patienceMs).unref()
}
