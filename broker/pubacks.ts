import type { Duplex } from 'node:stream'
import { packetType } from './wire.ts'

const pubackBytes = 4

/**
 * Takes the PUBACKs at the front of what a socket has read, before they enter its stream. They are nearly all that
 * subscribers send, one for each message: the event that a stream makes of every chunk, and its look for more in a
 * turn of their own, cost several times as much as what is to be done.
 *
 * `isAtEase`: a packet that comes in can be dealt with at once, and begins with the first byte.
 */
export function takePubacksAhead(
  socket: Duplex,
  isAtEase: () => boolean,
  acknowledged: (packetId: number) => void,
): void {
  const { push } = socket
  socket.push = (chunk: Buffer | null, encoding?: BufferEncoding) => {
    // What the stream still holds comes first.
    if (chunk === null || socket.readableLength > 0) return push.call(socket, chunk, encoding)
    let taken = 0
    while (isPuback(chunk, taken) && isAtEase()) {
      acknowledged(chunk.readUInt16BE(taken + 2))
      taken += pubackBytes
    }
    if (taken === 0) return push.call(socket, chunk, encoding)
    return taken === chunk.length || push.call(socket, chunk.subarray(taken))
  }
}

/** Whether a whole, well-formed PUBACK stands at this place. */
function isPuback(bytes: Buffer, at: number): boolean {
  if (bytes.length < at + pubackBytes) return false
  if (bytes[at] !== packetType.puback << 4 || bytes[at + 1] !== 2) return false
  return bytes[at + 2] !== 0 || bytes[at + 3] !== 0 // [MQTT-2.3.1-1]
}
