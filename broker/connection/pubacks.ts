import type { Duplex } from 'node:stream'
import { readAhead } from '../../listener/node-internals.ts'
import { packetType } from './wire.ts'

const pubackBytes = 4

/**
 * Takes the PUBACKs at the front of what a socket has read, before they enter its stream: they are nearly all that
 * subscribers send. `take` is asked for each: false when it cannot be dealt with yet.
 */
export function takePubacksAhead(socket: Duplex, take: (packetId: number) => boolean): void {
  readAhead(socket, (chunk) => {
    let taken = 0
    while (isPuback(chunk, taken) && take(chunk.readUInt16BE(taken + 2))) taken += pubackBytes
    return taken
  })
}

/** Whether a whole, well-formed PUBACK stands at this place. */
function isPuback(bytes: Buffer, at: number): boolean {
  if (bytes.length < at + pubackBytes) return false
  if (bytes[at] !== packetType.puback << 4 || bytes[at + 1] !== 2) return false
  return bytes[at + 2] !== 0 || bytes[at + 3] !== 0 // [MQTT-2.3.1-1]
}
