import { Duplex } from 'node:stream'
import type { Principal } from '../../acl/principal.ts'
import type { ClientCertificate } from '../../certs/client-certificate.ts'
import { endGently } from '../../listener/end-gently.ts'
import { OutgoingBuffer } from '../../listener/outgoing-buffer.ts'
import { countPerTurn } from '../../listener/pacing.ts'
import type { CutReason } from '../../telemetry/metrics.ts'
import type { InFlight } from '../session/in-flight.ts'
import {
  type ConnectCredentials,
  type ConnectPacket,
  encodeForAedes,
  judgeConnect,
} from './connect-packet.ts'
import type { ConnectionEvents, ConnectionLimits, Resume } from './connection-events.ts'
import { type Frame, FrameReader, type PublishFrame, readPublish } from './frames.ts'
import { watchKeepAlive } from './keep-alive.ts'
import type { PacketWatcher } from './packet-watcher.ts'
import { acknowledgementFrame, countFilters, encodeConnackRefusal, pingresp, readFilters } from './packets.ts'
import { ProtocolViolation, packetType } from './protocol.ts'
import { takePubacksAhead } from './pubacks.ts'

/** The hub stops reading while more received bytes than this are unanswered. Each packet adds `packetCostBytes`. */
const maxUnfinishedBytes = 1024 * 1024
const packetCostBytes = 256
/** Maximum number of packets per connection and turn of the event loop. One read may bring thousands. */
const packetsPerTurn = 128

const nothing = () => {}
const noCredentials: ConnectCredentials = { username: undefined, password: undefined }

/** The stream of checked packets that Aedes gets instead of the socket: CONNECT and DISCONNECT. */
export class MqttConnection extends Duplex {
  /** The session present flag of the CONNACK [MQTT-3.2.2-2]. */
  sessionPresent = false
  readonly remoteAddress: string
  /** Undefined: the client has shown none, or the hub has not asked. */
  readonly certificate: ClientCertificate | undefined
  readonly connectedAt: number
  /** The fan-out writes messages here directly. All other packets go through `send`. */
  readonly outgoing: OutgoingBuffer
  /** The client's CONNECT. Undefined until the hub has read it. */
  request: ConnectPacket | undefined
  principal: Principal | undefined
  /** Why the hub closed the connection. Undefined: the hub has not closed it. */
  cutReason: CutReason | undefined
  /** The client has sent DISCONNECT. Its will must not be published [MQTT-3.14.4-3]. */
  hasSentDisconnect = false
  readonly #socket: Duplex
  readonly #limits: ConnectionLimits
  readonly #events: ConnectionEvents
  readonly #frames
  /** Until `takeCredentials`: a password must not stay in memory as long as the connection. */
  #credentials: ConnectCredentials = noCredentials
  #inFlight: InFlight | undefined
  #state: 'new' | 'handshake' | 'open' | 'closed' = 'new'
  readonly #fitsTurn = countPerTurn(packetsPerTurn)
  readonly #resumeWaiting: Resume = (waitedFor) => this.#takeWaiting(waitedFor)
  #lastHeard = performance.now()
  /** `started` of the next PUBLISH. */
  #arrivedAt = this.#lastHeard
  #stopKeepAlive = nothing
  /** Bytes of received packets that are not answered yet, with `packetCostBytes` for each packet. */
  #unfinishedBytes = 0
  #stopped = false
  /** A packet that waits for pacing or the publish rate. Later packets wait behind this packet (design.md §8). */
  #waiting: { take: () => void; free: () => void } | undefined
  #peerEnded = false
  /** Resolves when the last SUBSCRIBE or UNSUBSCRIBE has taken effect: a PUBLISH behind it comes later. */
  #changing: Promise<void> | undefined
  /** The DISCONNECT of the client, until it is handed on. */
  #disconnect: Buffer | undefined
  #answers: Buffer[] = []
  /** Undefined: nobody traces the client. */
  #watcher: PacketWatcher | undefined

  constructor(
    socket: Duplex,
    remoteAddress: string,
    limits: ConnectionLimits,
    eventsOf: (connection: MqttConnection) => ConnectionEvents,
    certificate?: ClientCertificate,
  ) {
    super({ allowHalfOpen: true, emitClose: true })
    this.remoteAddress = remoteAddress
    this.certificate = certificate
    this.connectedAt = Date.now()
    this.#socket = socket
    this.#limits = limits
    this.#events = eventsOf(this)
    this.#frames = new FrameReader(
      () => (this.#state === 'new' ? limits.maxConnectPacket : limits.maxPacket),
      () => {
        const end = () => this.cut('overload', 'its packet was unfinished for longer than all others')
        return this.#events.collect(this.#state === 'new', end)
      },
      limits.maxSubscriptions,
    )
    this.outgoing = new OutgoingBuffer(socket, limits.outgoingBuffer, {
      slow: (detail) => this.cut('slow', detail),
      dropped: () => this.#events.dropped(),
    })
    takePubacksAhead(socket, (packetId) => this.#takePuback(packetId))
    socket.on('data', (chunk: Buffer) => this.#received(chunk))
    // A WebSocket has heard of its client before a message is whole.
    socket.on('heard', () => {
      this.#lastHeard = performance.now()
    })
    socket.on('end', () => {
      this.#peerEnded = true
      this.#endInward()
    })
    socket.on('error', () => this.destroy())
    socket.on('close', () => {
      // If the peer has ended properly, Aedes first gets all packets, and then closes this stream.
      if (!this.#peerEnded || this.#state !== 'open') this.destroy()
    })
  }

  get isOpen(): boolean {
    return this.#state === 'open'
  }

  /** The user name and password of the CONNECT, once. */
  takeCredentials(): ConnectCredentials {
    const credentials = this.#credentials
    this.#credentials = noCredentials
    return credentials
  }

  /**
   * Takes the packets behind an answered CONNECT. Returns the buffer for messages to the client. Undefined: the
   * connection is closed. `inFlight`: that of the session.
   */
  open(inFlight: InFlight): OutgoingBuffer | undefined {
    if (this.#state !== 'handshake') return undefined
    this.#state = 'open'
    this.#inFlight = inFlight
    const lastHeard = () => (this.#isPaused() ? undefined : this.#lastHeard)
    const { keepAlive } = this.request ?? { keepAlive: 0 }
    this.#stopKeepAlive = watchKeepAlive(keepAlive, lastHeard, (limit) =>
      this.cut('keepalive', `nothing heard for ${limit} ms`),
    )
    this.#proceed()
    return this.outgoing
  }

  /** Sends one encoded packet. If the outgoing buffer is full, cuts off the peer. */
  send(bytes: Buffer): void {
    if (this.#state === 'closed') return
    if (this.outgoing.accepts(bytes.length, 1)) this.outgoing.write(bytes)
  }

  /** Sends the answer to a packet, together with the other answers of this turn of the event loop. */
  answer(bytes: Buffer): void {
    if (this.#answers.push(bytes) === 1) process.nextTick(() => this.#sendAnswers())
  }

  #sendAnswers(): void {
    if (this.#answers.length === 0) return
    const answers = this.#answers
    this.#answers = []
    this.send(Buffer.concat(answers))
  }

  /** Shows all packets to `watcher` from now on. Undefined: to nobody. */
  watch(watcher: PacketWatcher | undefined): void {
    this.#watcher = watcher
    this.outgoing.watch = watcher && ((bytes) => watcher.sent(bytes))
  }

  /** Says to those who trace the client why it is refused. */
  refused(reason: string): void {
    this.#watcher?.note(`log-in refused: ${reason}`)
  }

  /** Closes the connection for a reason that is counted and logged. */
  cut(reason: CutReason, detail: string): void {
    if (this.#state === 'closed') return
    this.cutReason = reason
    this.#watcher?.ended(`the hub closed it: ${reason}, ${detail}`)
    this.#events.cut(reason, detail)
    // A peer that does not read would not read the last bytes either.
    if (reason === 'slow') this.#socket.destroy()
    this.destroy()
  }

  /** For shutdown: stops reading. Received packets are still answered. */
  stopReading(): void {
    this.#stopped = true
    this.#socket.pause()
  }

  /** Sends what Aedes writes. A packet of several chunks is sent as one. */
  override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
    this.send(Buffer.concat(chunks.map(({ chunk }) => chunk)))
    done()
  }

  override _read(): void {
    this.#resume()
  }

  override _destroy(_error: Error | null, done: (error: null) => void): void {
    this.#state = 'closed'
    this.#watcher?.ended(this.hasSentDisconnect ? 'DISCONNECT' : 'without DISCONNECT')
    this.#stopKeepAlive()
    this.#stopWaiting()
    this.#frames.close()
    this.outgoing.close()
    this.#inFlight?.endWait()
    endGently(this.#socket)
    done(null)
  }

  #resume(): void {
    if (this.#stopped || this.#state === 'handshake' || this.#state === 'closed') return
    if (!this.#isPaused()) this.#socket.resume()
  }

  /** Whether the hub has stopped reading. Meanwhile the keep alive is suspended. */
  #isPaused(): boolean {
    return this.#hasMore() || this.#unfinishedBytes > maxUnfinishedBytes
  }

  /** Whether packets are left: they wait for CONNACK [MQTT-3.1.4-5], behind `#waiting`, or for the next turn. */
  #hasMore(): boolean {
    return this.#waiting !== undefined || this.#frames.hasRest()
  }

  #countBytes(bytes: number): void {
    this.#unfinishedBytes += bytes + packetCostBytes
    if (this.#unfinishedBytes > maxUnfinishedBytes) this.#socket.pause()
  }

  #uncountBytes(bytes: number): void {
    this.#unfinishedBytes -= bytes + packetCostBytes
    this.#lastHeard = performance.now()
    this.#endInward()
    this.#resume()
  }

  /**
   * Hands on DISCONNECT, or the end of the peer, once no packet is left and all have their answers: Aedes closes the
   * connection then.
   */
  #endInward(): void {
    if (this.#unfinishedBytes > 0) return
    this.#sendAnswers()
    if (this.#disconnect) this.#inward(this.#disconnect)
    this.#disconnect = undefined
    if (this.#peerEnded && this.#state !== 'handshake' && !this.#hasMore()) this.push(null)
  }

  #received(chunk: Buffer): void {
    if (this.#state === 'closed') return
    this.#lastHeard = performance.now()
    this.#arrivedAt = this.#lastHeard
    this.#frames.push(chunk)
    this.#proceed()
  }

  /** Takes received packets until one must wait. If none is left, reads on. */
  #proceed(): void {
    try {
      while (this.#frames.hasRest() && this.#mayTake()) {
        const frame = this.#frames.next()
        if (frame && this.#state === 'new') this.#connect(frame)
        else if (frame) this.#dispatch(frame)
      }
    } catch (error) {
      if (!(error instanceof ProtocolViolation)) throw error
      // Destroys the socket first, because `cut` would read on for a moment. After too many tiny pieces, reading on is
      // too costly. Before CONNECT, reading on is useless.
      if (this.#state === 'new' || error.isCostly) this.#socket.destroy()
      this.cut('protocol', error.message)
    }
    if (this.#hasMore()) this.#socket.pause()
    this.#endInward()
    this.#resume()
  }

  #mayTake(): boolean {
    if (this.#waiting || this.#state === 'handshake' || this.#state === 'closed') return false
    if (this.#fitsTurn()) return true
    setImmediate(() => this.#proceed())
    return false
  }

  /** Takes a PUBACK before it enters the stream (`takePubacksAhead`). False: the PUBACK must enter the stream. */
  #takePuback(packetId: number): boolean {
    const isBehind = this.#hasMore() || !this.#frames.isBetweenPackets()
    if (this.#state !== 'open' || this.hasSentDisconnect || isBehind) return false
    this.#lastHeard = performance.now()
    this.#watcher?.received(acknowledgementFrame(packetType.puback, packetId))
    if (!this.#inFlight?.endFirst(packetId)) this.#events.deliveryAcknowledged(packetType.puback, packetId)
    return true
  }

  #connect(frame: Frame): void {
    this.#events.connecting(frame)
    this.#watcher?.received(frame)
    const judged = judgeConnect(frame, this.#limits.maxClientId)
    if ('refusal' in judged) {
      const { returnCode, reason, detail } = judged.refusal
      if (returnCode !== undefined) this.send(encodeConnackRefusal(returnCode))
      this.cut(reason, detail)
      return
    }
    this.request = judged.request
    this.#credentials = judged.credentials
    this.#state = 'handshake'
    this.#socket.pause()
    this.#inward(encodeForAedes(judged.request))
  }

  #dispatch(frame: Frame): void {
    if (this.hasSentDisconnect) return // DISCONNECT is the last packet [MQTT-3.14.4-2]
    this.#watcher?.received(frame)
    switch (frame.type) {
      case packetType.puback:
      case packetType.pubrec:
      case packetType.pubcomp:
        this.#events.deliveryAcknowledged(frame.type, frame.body.readUInt16BE(0))
        return
      case packetType.connect:
        this.cut('protocol', 'second CONNECT') // [MQTT-3.1.0-2]
        return
      case packetType.publish:
        this.#takePublish(frame)
        return
      case packetType.pingreq: // at once, whatever else waits for the store [MQTT-3.12.4-1]
        this.send(pingresp)
        return
      case packetType.subscribe:
        this.#takeRequest(frame, (request) => this.#events.subscribe(request))
        return
      case packetType.unsubscribe:
        this.#takeRequest(frame, (request) => this.#events.unsubscribe(request))
        return
      case packetType.pubrel:
        this.#countUntil(frame, this.#events.release(frame.body.readUInt16BE(0)))
        return
      case packetType.disconnect:
        this.hasSentDisconnect = true
        this.#disconnect = frame.bytes // `#endInward` hands it on
    }
  }

  #takePublish(frame: Frame): void {
    const publish = readPublish(frame, this.#events.publishes())
    const bytes = publish.topic.length + publish.payload.length
    if (this.#events.publishing(bytes, this.#resumeWaiting)) this.#publish(publish)
    else this.#wait(publish.payload, () => this.#publish(publish))
  }

  #takeRequest(frame: Frame, answer: ConnectionEvents['subscribe']): void {
    const take = () => {
      const answered = answer(readFilters(frame))
      this.#countUntil(frame, answered)
      const changed = answered.then(() => {
        if (this.#changing === changed) this.#changing = undefined
      })
      this.#changing = changed
    }
    if (this.#events.requesting(countFilters(frame), this.#resumeWaiting)) take()
    else this.#wait(frame.bytes, take)
  }

  /** Keeps a packet until the broker calls `#resumeWaiting`. `part`: the bytes of the packet that stay in memory. */
  #wait(part: Buffer, take: () => void): void {
    const end = () => this.cut('overload', 'its packet waited for longer than all others')
    const { grow, free } = this.#events.countBytes(end)
    this.#waiting = { take, free }
    grow(this.#frames.memoryOf(part))
  }

  #stopWaiting(): void {
    this.#waiting?.free()
    this.#waiting = undefined
  }

  #takeWaiting(waitedFor: 'pacing' | 'rate'): boolean {
    if (this.#state !== 'open') return false
    this.#lastHeard = performance.now()
    // A wait for the publish rate does not count as latency of the hub.
    if (waitedFor === 'rate') this.#arrivedAt = this.#lastHeard
    const take = this.#waiting?.take
    this.#stopWaiting()
    take?.()
    this.#proceed()
    return true
  }

  #publish(arrived: PublishFrame): void {
    const { length } = arrived.payload
    this.#countBytes(length)
    const finished = () => this.#uncountBytes(length)
    const publish = Object.assign(arrived, { started: this.#arrivedAt, finished })
    if (this.#changing) void this.#changing.then(() => this.#events.publish(publish))
    else this.#events.publish(publish)
  }

  #countUntil({ bytes: { length } }: Frame, answered: Promise<void>): void {
    this.#countBytes(length)
    void answered.finally(() => this.#uncountBytes(length))
  }

  #inward(bytes: Buffer): void {
    if (this.#state === 'closed' || this.readableEnded) return
    if (!this.push(bytes)) this.#socket.pause()
  }
}
