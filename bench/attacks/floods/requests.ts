import { type Attack, countStatuses, createAssault, type Target } from '../attack.ts'

/** Anonymous clients read pages of the hub as fast as they can. */
export const openapiReads: Attack = floodRequests(() => 'GET /openapi.json HTTP/1.1\r\n\r\n', 4)
export const metricsReads: Attack = floodRequests(() => 'GET /metrics HTTP/1.1\r\n\r\n', 4)
/** A user reads the list of livestreams. */
export const livestreamReads: Attack = floodRequests(
  ({ token }) => `GET /livestreams HTTP/1.1\r\nauthorization: Bearer ${token}\r\n\r\n`,
  4,
)
export const asyncapiReads: Attack = floodRequests(() => 'GET /asyncapi.json HTTP/1.1\r\n\r\n', 4)
export const unknownReads: Attack = floodRequests(() => 'GET /x HTTP/1.1\r\n\r\n', 64)
/** Requests with as many header fields as fit into a request. */
export const manyHeaders: Attack = floodRequests(() => `GET / HTTP/1.1\r\n${'a:\r\n'.repeat(3_900)}\r\n`, 8)
/** Log-ins with `expect: 100-continue`, which cost the node one more answer each. */
export const expectations: Attack = floodRequests(
  () =>
    'POST /auth/login HTTP/1.1\r\nexpect: 100-continue\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}',
  16,
)
/** Log-ins with wrong passwords. */
export const wrongLogins: Attack = floodRequests(() => {
  const body = JSON.stringify({ email: 'x@radio.example', password: 'wrong horse battery' })
  return `POST /auth/login HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
}, 4)

/** Sends `atOnce` requests at once, and repeats this after an answer or 1 s. */
export function floodRequests(make: (target: Target) => string, atOnce: number): Attack {
  return (target, force) => {
    const assault = createAssault(force)
    const many = Buffer.from(make(target).repeat(atOnce))
    return assault.everywhere(async (worker) => {
      const socket = await assault.connect(target.httpsPort, worker)
      if (!socket) return
      countStatuses(socket, assault)
      let isGoing = true
      while (isGoing && !assault.isOver()) {
        isGoing = await assault.write(socket, many)
        assault.seen.units += atOnce
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, 1_000)
          const settle = () => {
            clearTimeout(timer)
            socket.off('data', settle)
            socket.off('close', settle)
            resolve()
          }
          socket.on('data', settle)
          socket.on('close', settle)
        })
      }
      assault.leave(socket)
    })
  }
}
