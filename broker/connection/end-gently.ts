import type { Duplex } from 'node:stream'

/** How long a refused or closed peer may take to read its last bytes, milliseconds. */
const patienceMs = 1000
/** Bytes that a closed peer may still send in that time; they are thrown away. */
const lastBytes = 64 * 1024
/** Most pieces in which these bytes may come: a piece of one byte costs as much as one of a kilobyte. */
const lastPieces = 128

/**
 * Ends a socket and reads on for a moment: closing with unread input would reset the connection before the
 * answer is out.
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
