import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { connect as dial } from 'node:tls'
import { generate, type IConnackPacket, type IPublishPacket, type Packet, parser } from 'mqtt-packet'
import type { Issued } from '../../start-hub.ts'

export type Client = Awaited<ReturnType<typeof enter>>

export interface Door {
  index: number
  mqttPort: number
  caPath: string
}

/** The node answered the CONNECT with a return code other than 0. */
export class Refused extends Error {
  readonly code: number

  constructor(code: number) {
    super(`CONNACK ${code}`)
    this.code = code
  }
}

/**
 * Opens one MQTT connection over TLS. The caller chooses packet identifiers and DUP, and repeats messages. The client
 * acknowledges a received message after `onMessage`. A call rejects when the connection ends, or after `timeoutMs`
 * without an answer; the client then closes the connection.
 */
export async function enter(
  door: Door,
  options: {
    login: Issued
    clientId: string
    clean: boolean
    timeoutMs?: number
    onMessage?: (packet: IPublishPacket) => void
    /** Called when TLS is established, right before the client sends CONNECT. */
    onSent?: () => void
  },
) {
  const { login, clientId, clean, timeoutMs = 4_000, onMessage = () => {}, onSent = () => {} } = options
  const socket = dial({ port: door.mqttPort, host: 'localhost', ca: certificateOf(door.caPath) })
  const waiting = new Map<string, (packet: Packet) => void>()
  const parse = parser()
  let isOpen = true
  let messageId = 0
  const closed = new Promise<void>((resolve) => {
    socket.on('close', () => {
      isOpen = false
      resolve()
    })
  })
  socket.setNoDelay(true)
  socket.on('error', () => {})
  socket.on('data', (chunk) => {
    try {
      parse.parse(chunk)
    } catch {
      socket.destroy()
    }
  })
  parse.on('packet', take)

  const answer = answerTo('connack', 0)
  socket.once('secureConnect', () => {
    onSent()
    const { username, password } = login
    send({
      cmd: 'connect',
      protocolId: 'MQTT',
      protocolVersion: 4,
      clean,
      clientId,
      keepalive: 0,
      username,
      password: Buffer.from(password),
    })
  })
  const connack: IConnackPacket = await answer
  if (connack.returnCode !== 0) {
    socket.destroy()
    throw new Refused(connack.returnCode ?? -1)
  }

  return {
    /** Index of the node of this connection. */
    node: door.index,
    sessionPresent: connack.sessionPresent,
    closed,
    get isOpen() {
      return isOpen
    },

    /** Resolves with the return code of the SUBACK. */
    async subscribe(filter: string, qos: 0 | 1 | 2 = 1): Promise<number> {
      const id = nextId()
      const granted = answerTo('suback', id)
      send({ cmd: 'subscribe', messageId: id, subscriptions: [{ topic: filter, qos }] })
      const [code] = (await granted).granted
      return Number(code)
    },

    async unsubscribe(filter: string): Promise<void> {
      const id = nextId()
      const done = answerTo('unsuback', id)
      send({ cmd: 'unsubscribe', messageId: id, unsubscriptions: [filter] })
      await done
    },

    /** Resolves when the node has answered with PUBACK (QoS 1) or PUBREC (QoS 2). */
    async publish(message: {
      topic: string
      payload: string
      qos: 1 | 2
      messageId: number
      dup: boolean
    }): Promise<void> {
      const accepted = answerTo(message.qos === 1 ? 'puback' : 'pubrec', message.messageId)
      send({ cmd: 'publish', retain: false, ...message })
      await accepted
    },

    /** Sends PUBREL. Resolves when the node has answered with PUBCOMP. */
    async release(id: number): Promise<void> {
      const complete = answerTo('pubcomp', id)
      send({ cmd: 'pubrel', messageId: id })
      await complete
    },

    /** Resolves when the node has read all packets that this client sent before. */
    async settled(): Promise<void> {
      const answered = answerTo('pingresp', 0)
      send({ cmd: 'pingreq' })
      await answered
    },

    /** Ends the connection with a DISCONNECT. */
    async leave(): Promise<void> {
      if (!isOpen) return
      send({ cmd: 'disconnect' })
      socket.end()
      await Promise.race([closed, delay(500, undefined, { ref: false })])
      socket.destroy()
    },

    /** Ends the connection without a DISCONNECT. */
    cut: () => void socket.destroy(),
  }

  function send(packet: object): void {
    socket.write(generate(packet as Packet))
  }

  function nextId(): number {
    messageId = (messageId % 30_000) + 1
    return messageId
  }

  function take(packet: Packet): void {
    if (packet.cmd === 'publish') {
      onMessage(packet)
      if (packet.qos === 1) send({ cmd: 'puback', messageId: packet.messageId })
      return
    }
    waiting.get(`${packet.cmd} ${packet.messageId ?? 0}`)?.(packet)
  }

  function answerTo<Command extends Packet['cmd']>(
    cmd: Command,
    id: number,
  ): Promise<Extract<Packet, { cmd: Command }>> {
    type Wanted = Extract<Packet, { cmd: Command }>
    return new Promise((resolve, reject) => {
      const fail = (reason: string) => {
        clearTimeout(timer)
        socket.destroy()
        reject(new Error(`${clientId}: no ${cmd}: ${reason}`))
      }
      const timer = setTimeout(fail, timeoutMs, 'no answer in time')
      void closed.then(() => fail('the connection is gone'))
      waiting.set(`${cmd} ${id}`, (packet) => {
        clearTimeout(timer)
        waiting.delete(`${cmd} ${id}`)
        resolve(packet as Wanted)
      })
    })
  }
}

function certificateOf(path: string): Buffer {
  const known = certificates.get(path)
  if (known) return known
  const read = readFileSync(path)
  certificates.set(path, read)
  return read
}

const certificates = new Map<string, Buffer>()
