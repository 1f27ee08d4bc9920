import { connectPacket, publishPacket, subscribePacket } from '../../load/packets.ts'
import { type Attack, createAssault, nextChunk, type Target } from '../attack.ts'

/** Bytes written at once. */
const bytesAtOnce = 64 * 1024

type Login = 'publisher' | 'subscriber'

/** PINGREQs, which the node must answer. In all these floods, a logged-in client sends without a pause. */
export const pingFlood: Attack = floodPackets('subscriber', () => Buffer.of(0xc0, 0))
/** Releases of QoS 2 messages that were never sent. */
export const pubrelFlood: Attack = floodPackets('publisher', () => Buffer.of(0x62, 2, 0, 1))
/** Acknowledgements of messages that were never sent. */
export const pubackFlood: Attack = floodPackets('subscriber', () => Buffer.of(0x40, 2, 0, 1))
/** SUBSCRIBEs to `radio/#`. To each the node sends the retained values of all livestreams. */
export const subscribeFlood: Attack = floodPackets('subscriber', () => subscribePacket(1, 'radio/#', 0))
/** SUBSCRIBEs with a filter that the client may not read. */
export const deniedSubscribeFlood: Attack = floodPackets('subscriber', () => subscribePacket(1, 'inbox/#', 0))
/** SUBSCRIBEs with 1,000 allowed filters each, as many as a session may have. */
export const manyFiltersFlood: Attack = floodPackets('subscriber', () => {
  const filters = Array.from({ length: 1000 }, (_, index) =>
    Buffer.from(`\0\x08radio/${(index % 89) + 10}\0`),
  )
  return longPacket(0x82, Buffer.concat([Buffer.of(0, 1), ...filters]))
})
export const unsubscribeFlood: Attack = floodPackets('subscriber', () => {
  return Buffer.concat([Buffer.of(0xa2, 11, 0, 1, 0, 7), Buffer.from('radio/#')])
})
/** PUBLISHes to a forbidden topic. The node makes a report for each. */
export const deniedPublishFlood: Attack = floodPackets('publisher', () =>
  publishPacket('x', 1, Buffer.alloc(0)),
)
/** Events without content at the right topic. */
export const emptyPublishFlood: Attack = floodPackets('publisher', ({ livestreams: [first] }) =>
  publishPacket(`inbox/${first?.institution.id}`, 1, Buffer.alloc(0)),
)

function floodPackets(login: Login, make: (target: Target) => Buffer): Attack {
  return (target, force) => {
    const assault = createAssault(force)
    const packet = make(target)
    const count = Math.max(1, Math.floor(bytesAtOnce / packet.length))
    const many = Buffer.concat(Array.from({ length: count }, () => packet))
    return assault.everywhere(async (worker) => {
      const socket = await assault.connect(target.mqttPort, worker)
      if (!socket) return
      await assault.write(socket, connectPacket(`flood-${worker}`, true, target[login]))
      const connack = await nextChunk(socket)
      assault.answered(`CONNACK ${connack?.[3]}`)
      if (connack?.[3] !== 0) {
        await assault.pause(100)
        return assault.leave(socket)
      }
      socket.resume()
      while (!assault.isOver() && (await assault.write(socket, many, 5_000))) assault.seen.units += count
      assault.leave(socket)
    })
  }
}

function longPacket(header: number, body: Buffer): Buffer {
  const length = []
  for (let rest = body.length; rest > 0; rest >>= 7) length.push((rest & 127) | (rest > 127 ? 128 : 0))
  return Buffer.concat([Buffer.of(header, ...length), body])
}
