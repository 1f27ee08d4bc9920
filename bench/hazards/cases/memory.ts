import { setTimeout as delay } from 'node:timers/promises'
import { watchMemory } from '../../memory.ts'
import { openSocket } from '../client.ts'
import { tracks } from '../events.ts'
import type { Hazard } from '../hazard.ts'
import { openPublisher, openSubscriber, publish } from '../users.ts'

/* Hazards: a client makes a broker take too much memory. */

const mebibyte = 1024 * 1024

export const memoryBeforeLogIn: Hazard = {
  about:
    'Eight connections that are not logged in announce a CONNECT of 256 MB and send 12 MiB of it each: MiB by which the ' +
    'memory of the broker grows, of those that were sent. Shown: more than half.',
  alone: true,
  async look({ subject }) {
    const [connections, pieces] = [8, 12]
    const watch = watchMemory(subject.pid())
    const sockets = await Promise.all(
      Array.from({ length: connections }, () => openSocket(subject.address())),
    )
    const header = Buffer.from('10ffffff7f00044d51545404020000', 'hex')
    const piece = Buffer.alloc(mebibyte, 'a')
    for (const { send } of sockets) send(header)
    for (let sent = 0; sent < pieces; sent++) {
      await Promise.all(sockets.map(({ socket }) => writeTo(socket, piece)))
    }
    await delay(300)
    const { growth } = await watch.end()
    for (const { close } of sockets) await close()
    return halfOf(growth, connections * pieces)
  },
}

export const keptForFrozenReader: Hazard = {
  about:
    'A subscriber stops reading while 40 MB of events are published, and then reads on: MiB that the broker and the ' +
    'system below have kept for it. Shown: more than half; the system keeps a few.',
  alone: true,
  async look(place) {
    const { livestream } = place
    const [events, bytes] = [800, 50_000]
    const publisher = await openPublisher(place)
    const frozen = await openSubscriber(place, [`radio/${livestream.id}/#`], 0)
    frozen.socket.pause()
    await publish(place, publisher, tracks(livestream, events, bytes))
    frozen.socket.resume()
    await frozen.quiet()
    const kept = frozen.messages().reduce((sum, { payload }) => sum + payload.length, 0)
    return halfOf(kept, (events * bytes) / mebibyte)
  },
}

function halfOf(bytes: number, of: number) {
  const count = Math.max(0, Math.round(bytes / mebibyte))
  return { shown: count > of / 2, count, of: Math.round(of) }
}

function writeTo(socket: Awaited<ReturnType<typeof openSocket>>['socket'], piece: Buffer): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed) return resolve()
    const timer = setTimeout(resolve, 2000)
    socket.write(piece, () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
