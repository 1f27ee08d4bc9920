import type { Duplex } from 'node:stream'
import { generate, type IPublishPacket, type Packet, parser } from 'mqtt-packet'

export type Listener = ReturnType<typeof createListener>

/** Callbacks for a client's packets, in their order. */
export interface Heard {
  /**
   * `isRepeated`: a QoS 2 message with this identifier came before, and no PUBREL since. The application then does not
   * get the packet.
   */
  publish(packet: IPublishPacket, isRepeated: boolean): void
  /** The client sends PUBACK or PUBREC. */
  answered(packetId: number): void
  pubrel(packetId: number): void
}

type Answer = { cmd: 'puback' | 'pubrec' | 'pubcomp'; messageId: number }

/** The client of one session. Its QoS 2 identifiers last as long as the session. */
export function createListener(clientId: string, heard: Heard) {
  let socket: Duplex | undefined
  let packetId = 0
  /** Identifiers of received QoS 2 messages that the node has not released by PUBREL. */
  const received = new Set<number>()
  /** Identifiers released by PUBREL, without a PUBCOMP yet. */
  const uncompleted = new Set<number>()
  let held: Answer[] = []
  let isHolding = false
  let waiting = new Map<string, (packet: Packet) => void>()
  let closed: Promise<void> = Promise.resolve()

  return {
    get isOpen() {
      return socket !== undefined && !socket.destroyed
    },
    /** Identifiers whose PUBREL comes again with the next connection [MQTT-4.4.0-1]. */
    uncompleted,
    /** Number of answers that the client holds back. */
    get held() {
      return held.length
    },

    /**
     * Connects the client over `wire`. Until the CONNACK comes there, the client also reads from its previous
     * connection. The client calls `onIn` before it reads the packets after the CONNACK.
     */
    async connect(
      wire: Duplex,
      options: { clean: boolean; holds: boolean },
      onIn: (isPresent: boolean) => void,
    ) {
      const before = socket
      const own = new Map<string, (packet: Packet) => void>()
      const answer = once(own, 'connack 0', (packet) => {
        before?.destroy()
        socket = wire
        waiting = own
        isHolding = options.holds
        held = []
        if (packet.cmd === 'connack') onIn(packet.sessionPresent)
      })
      closed = listen(wire, own)
      const base = { cmd: 'connect', protocolId: 'MQTT', protocolVersion: 4, keepalive: 0 } as const
      wire.write(generate({ ...base, clientId, clean: options.clean }))
      const isGone = closed.then(() => Promise.reject(new Error(`${clientId}: closed before the CONNACK`)))
      isGone.catch(() => undefined)
      const connack = await Promise.race([answer, isGone])
      if (connack.cmd === 'connack' && connack.returnCode !== 0) {
        throw new Error(`${clientId}: CONNACK ${connack.returnCode}`)
      }
    },

    subscribe: (filters: ReadonlyMap<string, 0 | 1 | 2>) =>
      ask('suback', {
        cmd: 'subscribe',
        subscriptions: [...filters].map(([topic, qos]) => ({ topic, qos })),
        messageId: nextId(),
      }),

    unsubscribe: (filter: string) =>
      ask('unsuback', { cmd: 'unsubscribe', unsubscriptions: [filter], messageId: nextId() }),

    /** Resolves when the node has read all packets that the client sent before. */
    settled: () => ask('pingresp', { cmd: 'pingreq' }),

    /** From now on, the client holds its answers back. */
    hold(): void {
      isHolding = true
    },

    /** Sends held answers. After `all`, the client answers at once again. */
    acknowledge(which: 'all' | 'first half' | 'last half'): void {
      const half = Math.ceil(held.length / 2)
      const [from, to] =
        which === 'all' ? [0, held.length] : which === 'first half' ? [0, half] : [half, held.length]
      const chosen = held.slice(from, to)
      held = [...held.slice(0, from), ...held.slice(to)]
      if (which === 'all') isHolding = false
      for (const answer of chosen) send(answer)
    },

    async leave(): Promise<void> {
      socket?.write(generate({ cmd: 'disconnect' }))
      await closed
    },

    /** Ends the connection without DISCONNECT. Packets on their way are lost. */
    cut: () => void socket?.destroy(),

    /** Forgets the received identifiers, because the session has ended. */
    forget(): void {
      received.clear()
      uncompleted.clear()
    },
  }

  function listen(wire: Duplex, own: Map<string, (packet: Packet) => void>): Promise<void> {
    const parse = parser()
    parse.on('packet', (packet) => {
      if (wire.destroyed) return
      const waiter = own.get(`${packet.cmd} ${packet.messageId ?? 0}`)
      if (waiter) waiter(packet)
      else take(packet)
    })
    wire.on('data', (chunk) => void parse.parse(chunk))
    wire.on('error', () => undefined)
    wire.on('end', () => wire.destroy())
    return new Promise((resolve) => wire.on('close', resolve))
  }

  function take(packet: Packet): void {
    if (packet.cmd === 'publish') {
      const { qos, messageId = 0 } = packet
      const isRepeated = qos === 2 && received.has(messageId)
      if (qos === 2) received.add(messageId)
      heard.publish(packet, isRepeated)
      if (qos > 0) answer({ cmd: qos === 1 ? 'puback' : 'pubrec', messageId })
    } else if (packet.cmd === 'pubrel') {
      const { messageId = 0 } = packet
      received.delete(messageId)
      uncompleted.add(messageId)
      heard.pubrel(messageId)
      answer({ cmd: 'pubcomp', messageId })
    }
  }

  function answer(packet: Answer): void {
    if (isHolding) held.push(packet)
    else send(packet)
  }

  function send(packet: Answer): void {
    if (socket === undefined || socket.destroyed) return
    socket.write(generate(packet))
    if (packet.cmd === 'pubcomp') uncompleted.delete(packet.messageId)
    else heard.answered(packet.messageId)
  }

  function nextId(): number {
    packetId = (packetId % 1000) + 1
    return packetId
  }

  async function ask(cmd: Packet['cmd'], packet: Packet): Promise<Packet> {
    const name = `${cmd} ${packet.messageId ?? 0}`
    const answer = once(waiting, name)
    socket?.write(generate(packet))
    const isGone = closed.then(() => Promise.reject(new Error(`${clientId}: closed before the ${cmd}`)))
    isGone.catch(() => undefined)
    return Promise.race([answer, isGone])
  }

  function once(
    waiters: Map<string, (packet: Packet) => void>,
    name: string,
    then: (packet: Packet) => void = () => undefined,
  ): Promise<Packet> {
    return new Promise((resolve) => {
      waiters.set(name, (packet) => {
        waiters.delete(name)
        then(packet)
        resolve(packet)
      })
    })
  }
}
