import type { Duplex } from 'node:stream'
import { replacePush } from '../../listener/node-internals.ts'
import { packetType } from './protocol.ts'

const pubackBytes = 4

/**
 * Takes the PUBACKs at the front of received bytes before they enter the stream, to save CPU time. If `take` returns
 * false, that PUBACK and the rest enter the stream.
 */
export function takePubacksAhead(socket: Duplex, take: (packetId: number) => boolean): void {
  replacePush(socket, (push) => (chunk, encoding) => {
    // Bytes that the stream still holds come first.
    if (chunk === null || socket.readableLength > 0) return push(chunk, encoding)
    let taken = 0
    while (isPuback(chunk, taken) && take(chunk.readUInt16BE(taken + 2))) taken += pubackBytes
    if (taken === 0) return push(chunk, encoding)
    return taken === chunk.length || push(chunk.subarray(taken))
  })
}

/** Whether a whole, well-formed PUBACK begins at this offset. */
function isPuback(bytes: Buffer, at: number): boolean {
  if (bytes.length < at + pubackBytes) return false
  if (bytes[at] !== packetType.puback << 4 || bytes[at + 1] !== 2) return false
  return bytes[at + 2] !== 0 || bytes[at + 3] !== 0 // [MQTT-2.3.1-1]
}
