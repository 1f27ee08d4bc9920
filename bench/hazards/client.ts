import { once } from 'node:events'
import { connect } from 'node:tls'
import { generate, type IConnackPacket, type IPublishPacket, type Packet, parser } from 'mqtt-packet'
import type { Address } from '../load/light-client.ts'
import type { Login } from '../load/packets.ts'

export type Client = Awaited<ReturnType<typeof openClient>>

export interface Opening {
  login: Login | undefined
  /** By default an id that no other client has. */
  clientId?: string
  clean?: boolean
  will?: { topic: string; payload: Buffer; qos: 0 | 1 | 2; retain: boolean }
  /** Whether the client acknowledges its messages; by default it does. */
  acknowledges?: boolean
}

/** Longest wait for a packet where the caller names no other, milliseconds. */
const patienceMs = 8000
/** Longest wait for a packet without which nothing is tried, milliseconds. */
export const longPatienceMs = 60_000

let lastClient = 0

/** Connects over TLS and logs in. `connack` is undefined if no CONNACK came. */
export async function openClient(address: Address, of: Opening) {
  const client = await openSocket(address, of.acknowledges ?? true)
  client.send({
    cmd: 'connect',
    protocolId: 'MQTT',
    protocolVersion: 4,
    keepalive: 0,
    clientId: of.clientId ?? `hazards-${process.pid}-${++lastClient}`,
    clean: of.clean ?? true,
    ...(of.login && { username: of.login.username, password: Buffer.from(of.login.password) }),
    ...(of.will && { will: of.will }),
  })
  const connack = await client.until(() =>
    client.packets.find((packet): packet is IConnackPacket => packet.cmd === 'connack'),
  )
  return { ...client, connack }
}

/** Opens a TLS connection that can send any bytes, including invalid packets. */
export async function openSocket({ port, ca }: Address, acknowledges = true) {
  const socket = connect({ host: '127.0.0.1', servername: 'localhost', port, ca })
  socket.on('error', () => {})
  await Promise.race([once(socket, 'secureConnect'), once(socket, 'close')])
  socket.setNoDelay(true)
  const packets: Packet[] = []
  const looks = new Set<() => void>()
  const look = () => {
    for (const each of looks) each()
  }
  const incoming = parser()
  incoming.on('error', () => socket.destroy())
  incoming.on('packet', (packet) => {
    packets.push(packet)
    const answer = acknowledges ? answerTo(packet) : undefined
    if (answer) send(answer)
  })
  socket.on('data', (chunk: Buffer) => {
    incoming.parse(chunk)
    look()
  })
  socket.on('close', look)

  function send(...parts: (Packet | Buffer)[]): void {
    if (socket.destroyed) return
    socket.write(Buffer.concat(parts.map((part) => (Buffer.isBuffer(part) ? part : generate(part)))))
  }

  /** Calls `find` after each chunk until a result comes. Undefined: none in time, or the connection ended. */
  async function until<Found>(
    find: () => Found | undefined,
    withinMs = patienceMs,
  ): Promise<Found | undefined> {
    let isOver = false
    const timer = setTimeout(() => {
      isOver = true
      look()
    }, withinMs)
    try {
      for (;;) {
        const found = find()
        if (found !== undefined || socket.destroyed || isOver) return found
        await new Promise<void>((resolve) => {
          const listener = () => {
            looks.delete(listener)
            resolve()
          }
          looks.add(listener)
        })
      }
    } finally {
      clearTimeout(timer)
    }
  }

  const count = (wanted: Packet['cmd']) => packets.filter(({ cmd }) => cmd === wanted).length
  const close = async () => {
    if (!socket.closed) await Promise.all([once(socket, 'close'), socket.destroy()])
  }
  return {
    socket,
    packets,
    send,
    until,
    messages: () => packets.filter((packet): packet is IPublishPacket => packet.cmd === 'publish'),
    /** Number of received packets of this kind. */
    count,
    isClosed: () => socket.destroyed,
    /** Returns the granted QoS, or 0x80, for each filter. Undefined if no SUBACK came. */
    async subscribe(filters: readonly string[], qos: 0 | 1 | 2): Promise<number[] | undefined> {
      const messageId = packets.length + 1
      send({ cmd: 'subscribe', messageId, subscriptions: filters.map((topic) => ({ topic, qos })) })
      return until(() => {
        const suback = packets.find((packet) => packet.cmd === 'suback' && packet.messageId === messageId)
        return suback?.cmd === 'suback' ? suback.granted.map(Number) : undefined
      })
    },
    /** Resolves when the broker has read everything sent so far, or the connection is gone. */
    async settle(): Promise<void> {
      const before = count('pingresp')
      send({ cmd: 'pingreq' })
      await until(() => count('pingresp') > before || undefined)
    },
    /** Resolves when no packet has come for `forMs` milliseconds. */
    async quiet(forMs = 1000): Promise<void> {
      for (let seen = -1; seen < packets.length && !socket.destroyed; ) {
        seen = packets.length
        await until(() => packets.length > seen || undefined, forMs)
      }
    },
    /** Ends the connection with a DISCONNECT, so that the broker publishes no will. */
    async leave(): Promise<void> {
      if (socket.destroyed) return
      const closed = once(socket, 'close')
      send({ cmd: 'disconnect' })
      const timer = setTimeout(() => socket.destroy(), patienceMs)
      await closed
      clearTimeout(timer)
    },
    /** Ends the connection without a DISCONNECT. */
    close,
  }
}

function answerTo(packet: Packet): Packet | undefined {
  if (packet.cmd === 'pubrec') return { cmd: 'pubrel', ...idOf(packet) }
  if (packet.cmd === 'pubrel') return { cmd: 'pubcomp', ...idOf(packet) }
  if (packet.cmd !== 'publish' || packet.qos === 0) return undefined
  return { cmd: packet.qos === 1 ? 'puback' : 'pubrec', ...idOf(packet) }
}

function idOf({ messageId }: Packet) {
  return messageId === undefined ? {} : { messageId }
}
