import { connectPacket, subscribePacket } from '../load/packets.ts'
import { type Attack, createAssault, nextChunk } from './attack.ts'

/** One credential makes many persistent sessions on `radio/#`, and leaves them offline. */
export const offlineSessions: Attack = (target, force) => {
  const assault = createAssault(force)
  let last = 0
  return assault.everywhere(async (worker) => {
    const socket = await assault.connect(target.mqttPort, worker)
    if (!socket) return
    await assault.write(socket, connectPacket(`left-alone-${++last}`, false, target.subscriber))
    const connack = await nextChunk(socket)
    assault.answered(`CONNACK ${connack?.[3]}`)
    if (connack?.[3] === 0) {
      await assault.write(socket, subscribePacket(1, 'radio/#', 1))
      if (await nextChunk(socket)) assault.seen.units++
    }
    assault.leave(socket)
  })
}
