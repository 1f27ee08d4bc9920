import { readFileSync } from 'node:fs'
import { createServer, type TLSSocket } from 'node:tls'
import { preparePublish } from '../../broker/connection/frames.ts'
import { packetType } from '../../broker/connection/protocol.ts'
import { listen } from '../listen.ts'
import { createPacketCutter } from '../load/packets.ts'

interface Subscriber {
  socket: TLSSocket
  qos: number
  /** Packet identifier of the last message at QoS 1. */
  lastId: number
}

/** Start parameters of a process that runs a light server. */
export interface LightStart {
  cert: string
  key: string
  /** The topic of all messages. */
  topic: string
}

/** As many bytes as the hub adds to an event. */
const completion = Buffer.alloc(100, ' ')

/**
 * Starts an MQTT server that costs little more than its TLS sockets. There is no log-in, topic matching or access
 * control, and packets are not checked. Each subscriber gets every message, at the QoS that it asked for, up to
 * `maxQos`. `published` gets each PUBLISH (QoS 1), and acknowledges it.
 */
export async function startLightServer(
  { cert, key, topic }: LightStart,
  maxQos: 0 | 1,
  published: (payload: Buffer, acknowledge: () => void) => void,
) {
  const subscribers = new Set<Subscriber>()
  let pubacks = 0
  const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (socket) => {
    socket.setNoDelay(true)
    const subscriber = { socket, qos: 0, lastId: 0 }
    const cut = createPacketCutter((bytes, start, body, end) => {
      const first = bytes[start] ?? 0
      switch (first >> 4) {
        case packetType.connect:
          socket.write(Buffer.of(0x20, 2, 0, 0))
          break
        case packetType.subscribe:
          // The last byte is the QoS of the only filter.
          subscriber.qos = Math.min(maxQos, bytes[end - 1] ?? 0)
          subscribers.add(subscriber)
          socket.write(Buffer.of(0x90, 3, bytes[body] ?? 0, bytes[body + 1] ?? 0, subscriber.qos))
          break
        case packetType.publish: {
          const idAt = body + 2 + bytes.readUInt16BE(body)
          const puback = Buffer.of(0x40, 2, bytes[idAt] ?? 0, bytes[idAt + 1] ?? 0)
          published(bytes.subarray(idAt + 2, end), () => writeTogether(socket, puback))
          break
        }
        case packetType.puback:
          pubacks++
      }
    })
    socket.on('data', (chunk: Buffer) => cut(chunk, chunk.length))
    socket.on('error', () => socket.destroy())
    socket.on('close', () => subscribers.delete(subscriber))
  })

  return {
    port: await listen(server),

    /** Sends a message to all subscribers. It is encoded once for each QoS. */
    send(payload: Buffer): void {
      const message = preparePublish({ topic, payload })
      for (const subscriber of subscribers) {
        const { socket } = subscriber
        if (subscriber.qos === 0) {
          socket.write(message.packet(0, {}))
          continue
        }
        subscriber.lastId = (subscriber.lastId % 65_535) + 1
        const lent = message.packet(1, {}, subscriber.lastId)
        // A socket with an empty buffer encrypts before `write` returns: only a full one needs a copy.
        socket.write(socket.writableLength === 0 ? lent : Buffer.from(lent))
      }
    },

    /** How many PUBACKs of subscribers have been read. */
    pubacks: () => pubacks,
  }
}

/** An event as the server sends it on. */
export function completed(event: Buffer): Buffer {
  return Buffer.concat([event, completion])
}

/** Writes what one turn of the event loop has for a socket as one TLS record. */
function writeTogether(socket: TLSSocket, bytes: Buffer): void {
  if (socket.writableCorked === 0) {
    socket.cork()
    process.nextTick(() => socket.uncork())
  }
  socket.write(bytes)
}
