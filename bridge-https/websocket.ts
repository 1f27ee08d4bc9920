import type { IncomingMessage } from 'node:http'
import { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import type { ConnectionBounds } from '../listener/connection-bounds.ts'
import { endGently } from '../listener/end-gently.ts'
import { createHalfReceived } from '../listener/half-received.ts'
import { createRefusedConnections } from '../listener/refused-connections.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { type ErrorStatus, httpsError } from './answer.ts'
import type { RawAnswer } from './raw-answer.ts'

/** MQTT 3.1.1 §6: the only sub-protocol. */
const subProtocol = 'mqtt'

/** Why a connection ends, in the frame that closes it (RFC 6455 §7.4.1). `none`: it ended without that frame. */
const closeCodes = { protocol: 1002, text: 1003, none: 1006, policy: 1008 }

/**
 * A WebSocket message may have this size even if `maxPacket` is smaller. One message may hold several MQTT packets.
 * Before log-in, `maxConnectPacket` limits the message as well.
 */
const usualMessageBytes = 1024 * 1024
/** Maximum number of bytes that one read brings: those of a TLS record. */
const readBytes = 16 * 1024
/** Maximum number of frames of one message, and of reads for one frame. */
const maxPieces = 1024
/** Bytes around the content of a ping or pong of a client: its header and its mask. */
const controlFrameBytes = 6
/** Memory per piece (a frame, or one read) besides its content, bytes. */
const pieceCostBytes = 256
/**
 * Maximum number of bytes of all incomplete or unread messages. `unanswered`: on connections to which the broker has
 * sent nothing yet.
 */
const maxUnfinishedBytes = { unanswered: 16 * 1024 * 1024, answered: 64 * 1024 * 1024 }

/** Turns upgrade requests on `/mqtt` into byte streams for the broker. */
export function createWebSocketDoor(parts: {
  accept: (stream: Duplex, remoteAddress: string) => void
  /** Bounds of MQTT connections, which MQTT over TCP shares. */
  bounds: ConnectionBounds
  /** Largest MQTT packet that the broker accepts, bytes. */
  maxPacket: number
  /** Largest MQTT packet before log-in. */
  maxConnectPacket: number
  answerRaw: RawAnswer
  log: Log
  metrics: Metrics
}) {
  const { accept, bounds, maxConnectPacket, answerRaw, log, metrics } = parts
  const maxMessage = Math.max(usualMessageBytes, parts.maxPacket)
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    // A small compressed message could grow a thousandfold.
    perMessageDeflate: false,
    // One message per connection and turn of the event loop. One read may hold tens of thousands of messages.
    allowSynchronousEvents: false,
    // After the CONNACK, a connection gets the limit of its messages after log-in.
    maxPayload: maxConnectPacket,
    maxFragments: maxPieces,
    maxBufferedChunks: maxPieces,
    handleProtocols: () => subProtocol,
  })
  const unanswered = createHalfReceived(maxUnfinishedBytes.unanswered, maxPieces)
  const answered = createHalfReceived(maxUnfinishedBytes.answered, maxPieces)
  const refused = createRefusedConnections({ log, metrics })
  const addresses = new WeakMap<Duplex, string>()
  server.on('wsClientError', ({ message: reason }, socket, request) => {
    answerRaw(socket, 400, { request, remoteAddress: addresses.get(socket) ?? 'unknown', reason })
  })

  return {
    /** Takes over the socket of an upgrade request, or refuses it. */
    upgrade(
      request: IncomingMessage,
      socket: Duplex,
      head: Buffer,
      remoteAddress: string,
      /** Called when the connection becomes MQTT, and no longer counts as HTTPS. */
      taken: () => void,
    ): void {
      socket.on('error', () => socket.destroy())
      const status = statusOfRefusal(request) ?? noPlace(socket, remoteAddress)
      if (status !== undefined) {
        const errors = status === 400 ? [httpsError('request.upgrade')] : []
        answerRaw(socket, status, { request, remoteAddress, errors })
        return
      }
      taken()
      addresses.set(socket, remoteAddress)
      server.handleUpgrade(request, socket, head, (websocket) => {
        const stream = new WebSocketStream(websocket, socket, maxMessage)
        boundMessages(socket, websocket, stream, remoteAddress)
        accept(stream, remoteAddress)
      })
    },
  }

  /** Bounds the messages of a connection until the broker has read them. */
  function boundMessages(
    socket: Duplex,
    websocket: WebSocket,
    stream: WebSocketStream,
    remoteAddress: string,
  ): void {
    const end = (reason: 'protocol' | 'overload', detail: string, code?: number) => {
      if (stream.destroyed) return
      // The hub has closed it: paho-mqtt 1.6 answers without a mask.
      if (stream.writableEnded) return void stream.destroy()
      metrics.connectionsCut.inc({ reason })
      log.warn({ remoteAddress, reason, detail }, 'connection closed')
      if (code === undefined) stream.destroy()
      else stream.refuse(code)
    }
    const endForOthers = () =>
      end('overload', 'its message was incomplete, or not read, for longer than all others')
    const beforeAnswer = unanswered.countBytes(endForOthers)
    const afterwards = answered.countBytes(endForOthers)
    const free = () => {
      beforeAnswer.free()
      afterwards.free()
    }
    /** What has come since the last message, and how much of it is pings and pongs. */
    let bytes = 0
    let ofControlFrames = 0
    const begin = () => {
      bytes = 0
      ofControlFrames = 0
      // Unread messages still count for the limit of all messages together.
      if (stream.readableLength === 0) free()
    }
    // Counts a chunk before the WebSocket reads the chunk. So a complete message resets the count after its last bytes
    // are counted.
    socket.prependListener('data', (chunk: Buffer) => {
      // A refused client may send on for a moment, and nothing of that is kept.
      if (stream.destroyed) return
      bytes += chunk.length
      stream.emit('heard')
      const place = stream.isAnswered ? afterwards : beforeAnswer
      place.grow(chunk.length + pieceCostBytes)
      // Twice: a message has headers of frames, and pings may stand between its frames.
      const most = stream.isAnswered ? 2 * maxMessage : maxConnectPacket
      if (bytes > most + readBytes)
        end('protocol', `more than ${most} bytes without a message`, closeCodes.policy)
    })
    // A frame that is not allowed, or announces too much. `ws` has told the client by a code of its own.
    websocket.on('error', ({ message }) => end('protocol', message, closeCodes.protocol))
    websocket.on('message', begin)
    const passed = (content: Buffer) => {
      ofControlFrames += controlFrameBytes + content.length
      // If nothing else has come, no message is incomplete. Before the log-in pings count: no client needs many there.
      if (stream.isAnswered && ofControlFrames >= bytes) begin()
    }
    websocket.on('ping', passed)
    websocket.on('pong', passed)
    socket.once('end', () => {
      stream.hasPeerEnded = true
    })
    stream.onRead = free
    // Not with the socket: the broker may read messages after that.
    stream.once('close', free)
  }

  function noPlace(socket: Duplex, remoteAddress: string): ErrorStatus | undefined {
    const place = bounds.enter()
    if (place?.belongsTo(remoteAddress)) {
      socket.once('close', place.leave)
      return undefined
    }
    place?.leave()
    refused(place ? 'max-connections-per-address' : 'max-connections', { remoteAddress })
    return 503
  }
}

/** The status that refuses a request for a WebSocket. Undefined: an upgrade to MQTT over WebSocket. */
function statusOfRefusal({ headers }: IncomingMessage): ErrorStatus | undefined {
  const offered = headers['sec-websocket-protocol']?.split(',').map((name) => name.trim()) ?? []
  return offered.includes(subProtocol) ? undefined : 400 // [MQTT-6.0.0-3]
}

/**
 * The bytes of a WebSocket. A message may begin or end within a packet (MQTT 3.1.1 §6). Emits `heard` at each sign of
 * life: a client on a slow line sends a large message for longer than its keep alive.
 */
class WebSocketStream extends Duplex {
  readonly #websocket: WebSocket
  readonly #socket: Duplex
  readonly #maxMessage: number
  #isRefused = false
  /** The broker has answered the CONNECT. */
  isAnswered = false
  /** The client has ended the connection, and sent all before. paho-mqtt does so without a frame that closes. */
  hasPeerEnded = false
  /** Called when the broker reads the messages that have arrived. */
  onRead = () => {}

  /** `maxMessage`: largest message once the broker has answered, bytes. */
  constructor(websocket: WebSocket, socket: Duplex, maxMessage: number) {
    super()
    this.#websocket = websocket
    this.#socket = socket
    this.#maxMessage = maxMessage
    websocket.binaryType = 'nodebuffer'
    websocket.on('message', (data, isBinary) => {
      // [MQTT-6.0.0-1]
      if (!isBinary || !Buffer.isBuffer(data)) return void this.refuse(closeCodes.text)
      if (!this.push(data)) websocket.pause()
    })
    websocket.on('close', (code) => {
      this.push(null)
      // Otherwise the broker first takes all packets, DISCONNECT too, as over TCP.
      if (code === closeCodes.none && !this.hasPeerEnded) this.destroy()
    })
  }

  /** Ends the connection, and tells the client why, unless it was told already. */
  refuse(code: number): void {
    this.#isRefused = true
    this.#websocket.close(code)
    this.destroy()
  }

  override _read(): void {
    this.onRead()
    if (this.#websocket.isPaused) this.#websocket.resume()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#answer()
    this.#send(chunk, done)
  }

  /** Chunks that are written together become one message, or more: clients bound its size. It may end within a packet. */
  override _writev(
    chunks: { chunk: Buffer; encoding: BufferEncoding }[],
    done: (error?: Error | null) => void,
  ): void {
    this.#answer()
    let rest = Buffer.concat(chunks.map(({ chunk }) => chunk))
    for (; rest.length > usualMessageBytes; rest = rest.subarray(usualMessageBytes)) {
      this.#send(rest.subarray(0, usualMessageBytes))
    }
    this.#send(rest, done)
  }

  #send(bytes: Buffer, done?: (error?: Error | null) => void): void {
    // A client that has closed reads no answers, and the broker still takes the packets that it sent before.
    if (this.#websocket.readyState === this.#websocket.OPEN) this.#websocket.send(bytes, done)
    else done?.()
  }

  /** Notes that the broker answers. From now on a message may be larger. */
  #answer(): void {
    if (this.isAnswered) return
    this.isAnswered = true
    setMaxMessage(this.#websocket, this.#maxMessage)
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#websocket.close(1000)
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (this.#isRefused) endGently(this.#socket)
    else this.#websocket.terminate()
    done(error)
  }
}

/**
 * `ws` has one limit for all messages of a connection, and judges a frame by its header. If a version keeps its limit in
 * another place, larger messages than a CONNECT are refused after the log-in as well.
 */
function setMaxMessage(websocket: WebSocket, bytes: number): void {
  const receiver: unknown = Reflect.get(websocket, '_receiver')
  if (typeof receiver === 'object' && receiver !== null) Reflect.set(receiver, '_maxPayload', bytes)
}
