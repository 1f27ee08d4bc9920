import { type Attack, countStatuses, createAssault, type Target } from './attack.ts'

/** Anonymous clients read pages of the hub as fast as they can. */
export const openapiReads: Attack = floodRequests(() => 'GET /openapi.json HTTP/1.1\r\n\r\n', 4)
export const metricsReads: Attack = floodRequests(() => 'GET /metrics HTTP/1.1\r\n\r\n', 4)
/** A user reads the list of livestreams. */
export const livestreamReads: Attack = floodRequests(
  ({ token }) => `GET /livestreams HTTP/1.1\r\nauthorization: Bearer ${token}\r\n\r\n`,
  4,
)

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
