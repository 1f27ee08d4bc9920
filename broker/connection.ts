import { Duplex } from 'node:stream'
import type { Principal } from '../acl/principal.ts'
import { type ConnectPacket, readConnect } from './connect-packet.ts'
import { createFrameReader, type Frame, ProtocolViolation, type PublishFrame, readPublish } from './frames.ts'
import { watchKeepAlive } from './keep-alive.ts'
import { encodeConnackRefusal, encodeEmptyPublish, packetType } from './wire.ts'

export interface ConnectionLimits {
  /** Largest packet after log-in, bytes. */
  maxPacketBytes: number
  /** Largest packet before log-in, bytes. */
  maxConnectBytes: number
  /** Bytes waiting for one subscriber before it is cut off. */
  outgoingBuffer: number
}

/** What a connection tells the broker around it. */
export interface ConnectionEvents {
  /** PUBACK, PUBREC or PUBCOMP of a message that this broker delivered. */
  acknowledged(type: number, packetId: number): void
  /** The hub closes the connection; `reason` is a stable word for counters. */
  cut(reason: CutReason, detail: string): void
  /** A QoS 0 message found no room. */
  dropped(): void
  /** A PUBLISH came in; for how many milliseconds to stop reading, because there were too many. */
  publishing(): number
}

export type CutReason =
  | 'protocol'
  | 'version'
  | 'slow'
  | 'keepalive'
  | 'revoked'
  | 'takeover'
  | 'operator'
  | 'error'

/** A PUBLISH of the client and when its last byte came in, on the clock of `performance.now()`. */
export interface ArrivedPublish extends PublishFrame {
  started: number
}

/** [MQTT-3.1.0-1] */
const notConnect = { violation: 'first packet is not CONNECT' }
/** How long a refused or closed peer may take to read its last bytes, milliseconds. */
const lingerMs = 1000
/** A subscriber that keeps more than half its buffer for so long has stopped reading, milliseconds. */
const frozenMs = 10_000
/** Reading pauses while more than this is received and not acknowledged, bytes; each PUBLISH counts as a few more. */
const maxUnfinishedBytes = 1024 * 1024
const publishCostBytes = 256
/** Retained and queued messages wait while more than this is on its way, bytes. */
const paceBytes = 128 * 1024

/**
 * The connection Aedes sees instead of the socket.
 *
 * Inwards it lets through only whole, well-formed packets, and keeps for itself what it does better:
 * keep alive, and the acknowledgements of messages that distribution delivered. Outwards writes are
 * coalesced into a bounded buffer; a peer that stops reading is cut off and nobody waits for it.
 */
export class MqttConnection extends Duplex {
  readonly remoteAddress: string
  readonly connectedAt: number
  /** Set once the CONNECT was read. */
  request: ConnectPacket | undefined
  principal: Principal | undefined
  /** Why the hub closed it. */
  cutReason: CutReason | undefined
  /** The client said goodbye, so that its will is void [MQTT-3.14.4-3]. */
  farewell = false
  /** Shown in CONNACK [MQTT-3.2.2-2]. */
  sessionPresent = false
  /** Each PUBLISH handed inwards and not yet taken by `nextPublish`. */
  readonly #publishes: ArrivedPublish[] = []
  readonly #socket: Duplex
  readonly #limits: ConnectionLimits
  readonly #events: ConnectionEvents
  readonly #frames
  #state: 'new' | 'handshake' | 'open' | 'closed' = 'new'
  /** Packets behind a CONNECT that is not answered yet [MQTT-3.1.4-5], or behind too many publishes. */
  readonly #held: Frame[] = []
  #connackSeen = false
  #corked = false
  #lastHeard = performance.now()
  #stopKeepAlive = () => {}
  #frozenTimer: NodeJS.Timeout | undefined
  /** Payloads received and not yet acknowledged. */
  #unfinishedBytes = 0
  #stopped = false
  #throttled = false

  constructor(socket: Duplex, remoteAddress: string, limits: ConnectionLimits, events: ConnectionEvents) {
    super({ allowHalfOpen: true, emitClose: true })
    this.remoteAddress = remoteAddress
    this.connectedAt = Date.now()
    this.#socket = socket
    this.#limits = limits
    this.#events = events
    this.#frames = createFrameReader(() =>
      this.#state === 'open' ? limits.maxPacketBytes : limits.maxConnectBytes,
    )
    socket.on('data', (chunk: Buffer) => this.#received(chunk))
    socket.on('end', () => this.push(null))
    socket.on('error', () => this.destroy())
    socket.on('close', () => this.destroy())
    socket.on('drain', () => {
      this.#thawed()
      this.emit('paced')
    })
  }

  get isOpen(): boolean {
    return this.#state === 'open'
  }

  /** Bytes written and not yet taken by the network. */
  get pendingBytes(): number {
    return this.#socket.writableLength
  }

  /** A PUBLISH taken with `nextPublish` is acknowledged or given up: there is room for more. */
  finished({ payload }: ArrivedPublish): void {
    this.#unfinishedBytes -= payload.length + publishCostBytes
    this.#resume()
  }

  /** The oldest PUBLISH not yet taken; Aedes asks about them in the order they came in. */
  nextPublish(): ArrivedPublish | undefined {
    return this.#publishes.shift()
  }

  /** The log-in is done: packets that came behind the CONNECT go in now. */
  open(): void {
    if (this.#state !== 'handshake') return
    this.#state = 'open'
    const lastHeard = () => (this.#throttled ? undefined : this.#lastHeard)
    const { keepAlive } = this.request ?? { keepAlive: 0 }
    this.#stopKeepAlive = watchKeepAlive(keepAlive, lastHeard, (limit) =>
      this.cut('keepalive', `nothing heard for ${limit} ms`),
    )
    this.#dispatchHeld()
    this.#resume()
  }

  /**
   * Sends one encoded packet. When the buffer is full a `droppable` one (QoS 0) is left out; for any other
   * the peer is cut off. False when it was not sent.
   */
  send(bytes: Buffer, droppable = false): boolean {
    if (this.#state === 'closed') return false
    const pending = this.#socket.writableLength + bytes.length
    // The first packet always fits: a buffer smaller than the largest message must not lock anyone out.
    if (pending > this.#limits.outgoingBuffer && this.#socket.writableLength > 0) {
      if (droppable) return this.#drop()
      this.cut('slow', `${pending} bytes waiting`)
      return false
    }
    if (pending > this.#limits.outgoingBuffer / 2) {
      this.#frozenTimer ??= setTimeout(
        () => this.cut('slow', `not read for ${frozenMs} ms`),
        frozenMs,
      ).unref()
    }
    if (!this.#corked) {
      this.#corked = true
      this.#socket.cork()
      process.nextTick(() => {
        this.#corked = false
        this.#socket.uncork()
      })
    }
    this.#socket.write(bytes)
    return true
  }

  /** Resolves when more may be sent without piling up, at once where nothing waits. */
  async paced(): Promise<void> {
    while (this.#state === 'open' && this.#socket.writableLength > paceBytes) {
      await new Promise<void>((resolve) => this.once('paced', resolve))
    }
  }

  /** Closes the connection for a reason that is counted and logged. */
  cut(reason: CutReason, detail: string): void {
    if (this.#state === 'closed') return
    this.cutReason = reason
    this.#events.cut(reason, detail)
    // Who does not read will not read a farewell either.
    if (reason === 'slow') this.#socket.destroy()
    this.destroy()
  }

  /** Stops taking packets; what was received before is still answered. For shutdown. */
  stopReading(): void {
    this.#stopped = true
    this.#socket.pause()
  }

  override _read(): void {
    this.#resume()
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#writeOut(chunk)
    done()
  }

  override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
    this.#writeOut(Buffer.concat(chunks.map(({ chunk }) => chunk)))
    done()
  }

  override _destroy(_error: Error | null, done: (error: null) => void): void {
    this.#state = 'closed'
    this.#stopKeepAlive()
    this.#thawed()
    this.emit('paced')
    this.#socket.removeAllListeners('data')
    this.#socket.resume()
    this.#socket.end()
    setTimeout(() => this.#socket.destroy(), lingerMs).unref()
    done(null)
  }

  #resume(): void {
    if (this.#stopped || this.#throttled || this.#state === 'closed' || this.#held.length > 0) return
    if (this.#unfinishedBytes <= maxUnfinishedBytes) this.#socket.resume()
  }

  /** Back-pressure instead of loss: what the client sends waits in the network (design.md §8). */
  #throttle(ms: number): void {
    if (ms <= 0 || this.#throttled) return
    this.#throttled = true
    this.#socket.pause()
    setTimeout(() => {
      this.#throttled = false
      this.#lastHeard = performance.now()
      this.#dispatchHeld()
      this.#resume()
    }, ms).unref()
  }

  #dispatchHeld(): void {
    while (this.#state === 'open' && !this.#throttled) {
      const frame = this.#held.shift()
      if (!frame) return
      this.#dispatch(frame)
    }
  }

  #received(chunk: Buffer): void {
    if (this.#state === 'closed') return
    this.#lastHeard = performance.now()
    try {
      for (const frame of this.#frames.push(chunk)) this.#accept(frame)
    } catch (error) {
      if (!(error instanceof ProtocolViolation)) throw error
      for (const frame of error.before) this.#accept(frame)
      this.cut('protocol', error.message)
    }
  }

  #accept(frame: Frame): void {
    if (this.#state === 'new') {
      this.#connect(frame)
    } else if (this.#state === 'handshake' || this.#throttled || this.#held.length > 0) {
      this.#held.push(frame)
      this.#socket.pause()
    } else if (this.#state === 'open') {
      this.#dispatch(frame)
    }
  }

  #connect(frame: Frame): void {
    const request = frame.type === packetType.connect ? readConnect(frame) : notConnect
    if ('violation' in request) {
      this.cut('protocol', request.violation)
      return
    }
    if ('refuse' in request) {
      this.send(encodeConnackRefusal(request.refuse))
      if (request.refuse === 1) this.cut('version', 'not MQTT 3.1.1')
      else this.cut('protocol', 'empty client id without clean session')
      return
    }
    this.request = request
    this.#state = 'handshake'
    const bytes = Buffer.from(frame.bytes)
    // Keep alive is watched here, where acknowledgements count as life too [MQTT-3.1.2-24].
    bytes.writeUInt16BE(0, request.keepAliveAt)
    this.#inward(bytes)
  }

  #dispatch(frame: Frame): void {
    switch (frame.type) {
      case packetType.puback:
      case packetType.pubrec:
      case packetType.pubcomp:
        this.#events.acknowledged(frame.type, frame.body.readUInt16BE(0))
        return
      case packetType.connect:
        this.cut('protocol', 'second CONNECT') // [MQTT-3.1.0-2]
        return
      case packetType.publish: {
        // Aedes runs the acknowledgement of it and needs nothing else: topic and payload stay here.
        const publish = readPublish(frame)
        this.#publishes.push({ ...publish, started: this.#lastHeard })
        this.#unfinishedBytes += publish.payload.length + publishCostBytes
        if (this.#unfinishedBytes > maxUnfinishedBytes) this.#socket.pause()
        this.#throttle(this.#events.publishing())
        this.#inward(encodeEmptyPublish(publish.qos, publish.packetId))
        return
      }
      case packetType.disconnect:
        this.farewell = true
        break
    }
    this.#inward(frame.bytes)
  }

  #inward(bytes: Buffer): void {
    if (this.#state === 'closed' || this.readableEnded) return
    if (!this.push(bytes)) this.#socket.pause()
  }

  #writeOut(bytes: Buffer): void {
    if (!this.#connackSeen && bytes[0] === packetType.connack << 4) {
      this.#connackSeen = true
      // Aedes calls only a session with subscriptions present [MQTT-3.2.2-2]; a refusal never is [MQTT-3.2.2-4].
      if (bytes[3] === 0) bytes[2] = this.sessionPresent ? 1 : 0
    }
    this.send(bytes)
  }

  #drop(): false {
    this.#events.dropped()
    return false
  }

  #thawed(): void {
    clearTimeout(this.#frozenTimer)
    this.#frozenTimer = undefined
  }
}
