import type { Duplex } from 'node:stream'

/** How long a refused or closed peer may take to read its last bytes, milliseconds. */
const patienceMs = 1000
/** What a closed peer may still send meanwhile; it is thrown away. */
const lastBytes = 64 * 1024
/** The same in pieces: a byte alone costs as much as a kilobyte. */
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
