import type { Duplex } from 'node:stream'
import { packetType } from './wire.ts'

const pubackBytes = 4

/**
 * Takes the PUBACKs at the front of what a socket has read, before they enter its stream. They are nearly all that
 * subscribers send, one for each message: the event that a stream makes of every chunk, and its look for more in a
 * turn of their own, cost several times as much as what is to be done.
 *
 * `take` is asked for each: false when it cannot be dealt with yet.
 */
export function takePubacksAhead(socket: Duplex, take: (packetId: number) => boolean): void {
  const { push } = socket
  socket.push = (chunk: Buffer | null, encoding?: BufferEncoding) => {
    // What the stream still holds comes first.
    if (chunk === null || socket.readableLength > 0) return push.call(socket, chunk, encoding)
    let taken = 0
    while (isPuback(chunk, taken) && take(chunk.readUInt16BE(taken + 2))) taken += pubackBytes
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
