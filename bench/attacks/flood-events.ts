import { connectPacket, createPacketCutter, publishPacket } from '../load/packets.ts'
import { type Attack, createAssault, type Target } from './attack.ts'

/** Number of events that each connection keeps in flight. */
const inFlight = 4

/** Publishes events with one credential, as fast as the node acknowledges them. */
export function floodEvents(make: (target: Target) => readonly Buffer[]): Attack {
  return (target, force) => {
    const assault = createAssault(force)
    const topic = `inbox/${target.livestreams[0]?.institution.id}`
    const payloads = make(target)
    return assault.everywhere(async (worker) => {
      const socket = await assault.connect(target.mqttPort, worker)
      if (!socket) return
      let packetId = 0
      const publish = () => {
        packetId = (packetId % 65_535) + 1
        const payload = payloads[packetId % payloads.length]
        if (payload && !assault.isOver())
          void assault.write(socket, publishPacket(topic, packetId, payload), 10_000)
      }
      const cut = createPacketCutter((bytes, start, body) => {
        const isConnack = bytes[start] === 0x20
        if (isConnack) assault.answered(`CONNACK ${bytes[body + 1]}`)
        if (isConnack && bytes[body + 1] === 0) for (let sent = 0; sent < inFlight; sent++) publish()
        if (bytes[start] !== 0x40) return
        assault.seen.units++
        publish()
      })
      socket.on('data', (chunk: Buffer) => cut(chunk, chunk.length))
      await assault.write(socket, connectPacket(`flood-${worker}`, true, target.publisher))
      await assault.hold(socket, Infinity)
      assault.leave(socket)
    })
  }
}
