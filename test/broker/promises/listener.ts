import type { Duplex } from 'node:stream'
import { generate, type IPublishPacket, type Packet, parser } from 'mqtt-packet'

export type Listener = ReturnType<typeof createListener>

/** What happens at the client of a session, told in the order in which it happens. */
export interface Heard {
  /** `isRepeated`: at QoS 2, and its identifier is not released: the application does not get it again. */
  publish(packet: IPublishPacket, isRepeated: boolean): void
  /** PUBACK or PUBREC goes out. */
  answered(packetId: number): void
  pubrel(packetId: number): void
}

type Answer = { cmd: 'puback' | 'pubrec' | 'pubcomp'; messageId: number }

/**
 * The client of one session: it keeps the received identifiers of QoS 2 for as long as the session lasts, and answers
 * at once or when it is told to.
 */
export function createListener(clientId: string, heard: Heard) {
  let socket: Duplex | undefined
  let packetId = 0
  /** Received at QoS 2 and not released. */
  const received = new Set<number>()
  /** Released, and the PUBCOMP was not sent. */
  const uncompleted = new Set<number>()
  let held: Answer[] = []
  let isHolding = false
  let waiting = new Map<string, (packet: Packet) => void>()
  let closed: Promise<void> = Promise.resolve()

  return {
    get isOpen() {
      return socket !== undefined && !socket.destroyed
    },
    /** Its PUBREL comes again with the next connection [MQTT-4.4.0-1]. */
    uncompleted,
    /** So many answers are held back. */
    get held() {
      return held.length
    },

    /**
     * Logs in, over a connection of its own. Packets behind the CONNACK are heard when `onIn` has returned; until then
     * those of the connection before.
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

    /** Resolves when the node has read all that was sent before. */
    settled: () => ask('pingresp', { cmd: 'pingreq' }),

    /** Answers, and further ones, wait. */
    hold(): void {
      isHolding = true
    },

    /** Sends answers that were held back: all, and further ones at once, or only the first or last half. */
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

    /** Without a DISCONNECT; nothing that is on its way arrives. */
    cut: () => void socket?.destroy(),

    /** The session is over, and with it what was received. */
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
