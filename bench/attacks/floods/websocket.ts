import { type Attack, createAssault } from '../attack.ts'
import { openWebSocket } from '../websocket.ts'

/** An anonymous client sends WebSocket pings. The node must answer each with a pong. */
export const websocketPings: Attack = floodFrames(Buffer.from('898000000000', 'hex'))
/** An anonymous client sends empty WebSocket messages. */
export const emptyMessages: Attack = floodFrames(Buffer.from('828000000000', 'hex'))
/** An anonymous client sends one WebSocket message in empty fragments, without an end. */
export const emptyFragments: Attack = floodFrames(
  Buffer.from('008000000000', 'hex'),
  Buffer.from('028000000000', 'hex'),
)

function floodFrames(frame: Buffer, first: Buffer = Buffer.alloc(0)): Attack {
  const count = Math.floor((64 * 1024) / frame.length)
  const many = Buffer.concat(Array.from({ length: count }, () => frame))
  return (target, force) => {
    const assault = createAssault(force)
    return assault.everywhere(async (worker) => {
      const socket = await openWebSocket(assault, target.httpsPort, worker)
      if (!socket) return
      socket.resume()
      await assault.write(socket, first)
      while (!assault.isOver() && (await assault.write(socket, many))) assault.seen.units += count
      assault.leave(socket)
    })
  }
}
