import { readFileSync } from 'node:fs'
import { createServer, type TLSSocket } from 'node:tls'
import { createFrameReader, preparePublish, readPublish } from '../../broker/connection/frames.ts'
import { packetType } from '../../broker/connection/protocol.ts'
import { answer } from '../answer.ts'

/*
 * The fastest delivery that is possible on this platform. Each message is encoded once, and every TLS socket gets the
 * same bytes, at QoS 0. Publishers get PUBACK at once. There is no topic matching, access control or store.
 */

/** As many bytes as the hub adds to an event. */
const completion = Buffer.alloc(100, ' ')

const subscribers = new Set<TLSSocket>()

export const commands = {
  async start({ cert, key, topic }: { cert: string; key: string; topic: string }): Promise<number> {
    const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (socket) => {
      socket.setNoDelay(true)
      serve(socket, topic)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    return typeof address === 'object' && address ? address.port : 0
  },
}

answer(commands)

function serve(socket: TLSSocket, topic: string): void {
  const frames = createFrameReader(() => 1024 * 1024)
  socket.on('data', (chunk: Buffer) => {
    frames.push(chunk)
    for (let frame = frames.next(); frame; frame = frames.next()) {
      if (frame.type === packetType.connect) socket.write(Buffer.of(0x20, 2, 0, 0))
      if (frame.type === packetType.subscribe) {
        socket.write(Buffer.of(0x90, 3, frame.body[0] ?? 0, frame.body[1] ?? 0, 0))
        subscribers.add(socket)
      }
      if (frame.type === packetType.publish) {
        const { packetId, payload } = readPublish(frame)
        socket.write(Buffer.of(0x40, 2, packetId >> 8, packetId & 0xff))
        const bytes = preparePublish({ topic, payload: Buffer.concat([payload, completion]) }).packet(0, {})
        for (const subscriber of subscribers) subscriber.write(bytes)
      }
    }
  })
  socket.on('error', () => socket.destroy())
  socket.on('close', () => subscribers.delete(socket))
}
