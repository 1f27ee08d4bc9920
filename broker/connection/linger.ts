import type { Duplex } from 'node:stream'

/** How long a refused or closed peer may take to read its last bytes, milliseconds. */
const lingerMs = 1000
/** What a closed peer may still send meanwhile; it is thrown away. */
const lingerBytes = 64 * 1024

/**
 * Ends a socket and reads on for a moment: closing with unread input would reset the connection before the
 * answer is out.
 */
export function endGently(socket: Duplex): void {
  socket.removeAllListeners('data')
  let discarded = 0
  socket.on('data', (chunk: Buffer) => {
    discarded += chunk.length
    if (discarded > lingerBytes) socket.destroy()
  })
  socket.resume()
  socket.end()
  setTimeout(() => socket.destroy(), lingerMs).unref()
}
