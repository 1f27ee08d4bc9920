import type { Duplex } from 'node:stream'

/** How long a refused or closed peer may take to read its last bytes, milliseconds. */
const patienceMs = 1000
/** Maximum number of bytes that the peer may still send in this time. The hub discards them. */
const lastBytes = 64 * 1024
/** Maximum number of pieces in `lastBytes`. A tiny piece costs the node as much as a kilobyte. */
const lastPieces = 128

/**
 * Ends a socket, and reads on for a moment. Unread input would reset the TCP connection, and the peer could lose the
 * last packets.
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
