import type { IncomingMessage } from 'node:http'
import { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import type { ConnectionBounds } from '../listener/connection-bounds.ts'
import { createHalfReceived } from '../listener/half-received.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createRareWarning } from '../telemetry/rare-warning.ts'
import { type ErrorStatus, httpsError } from './answer.ts'
import type { RawAnswer } from './raw-answer.ts'

/** Where MQTT over WebSocket is served (design.md §3). */
export const websocketPath = '/mqtt'

/** MQTT 3.1.1 §6: the only sub-protocol. */
const subProtocol = 'mqtt'

/** WebSocket messages up to this size are always taken, as one message may hold several MQTT packets. */
const usualMessageBytes = 1024 * 1024
/** Maximum number of bytes that one read brings: those of a TLS record. */
const readBytes = 16 * 1024
/** Maximum number of frames of one message, and of reads for one frame. */
const maxPieces = 1024
/** Bytes of memory that each piece of a message (a frame, or one read) takes besides its content. */
const pieceCostBytes = 256
/**
 * Maximum number of bytes of all messages that are incomplete, or that the broker has not read. `unanswered`: messages
 * on connections to which the broker has sent nothing yet. `answered`: messages on all other connections.
 */
const maxUnfinishedBytes = { unanswered: 16 * 1024 * 1024, answered: 64 * 1024 * 1024 }

/** Turns upgrade requests on `/mqtt` into byte streams for the broker. */
export function createWebSocketDoor(parts: {
  accept: (stream: Duplex, remoteAddress: string) => void
  /** Bounds of MQTT connections, which MQTT over TCP shares. */
  bounds: ConnectionBounds
  /** Largest MQTT packet that the broker accepts. The limit for a WebSocket message is never below this. */
  maxPacketBytes: number
  /** Largest MQTT packet before log-in. */
  maxConnectBytes: number
  answerRaw: RawAnswer
  log: Log
  metrics: Metrics
}) {
  const { accept, bounds, maxPacketBytes, maxConnectBytes, answerRaw, log, metrics } = parts
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    // Off, because a compressed message may be a thousand times as long as it looks.
    perMessageDeflate: false,
    // One message per connection and turn of the event loop: one read may hold tens of thousands of tiny messages.
    allowSynchronousEvents: false,
    maxPayload: Math.max(usualMessageBytes, maxPacketBytes),
    maxFragments: maxPieces,
    maxBufferedChunks: maxPieces,
    handleProtocols: () => subProtocol,
  })
  const unanswered = createHalfReceived(maxUnfinishedBytes.unanswered, maxPieces)
  const answered = createHalfReceived(maxUnfinishedBytes.answered, maxPieces)
  const warnOfRefused = createRareWarning(log, 'connection refused')
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
        const stream = new WebSocketStream(websocket)
        boundMessages(socket, websocket, stream, remoteAddress)
        accept(stream, remoteAddress)
      })
    },
  }

  /**
   * Limits the size of a message while it arrives and waits for the broker. Before the CONNACK the limit is that of a
   * CONNECT.
   */
  function boundMessages(
    socket: Duplex,
    websocket: WebSocket,
    stream: WebSocketStream,
    remoteAddress: string,
  ): void {
    const end = (reason: 'protocol' | 'overload', detail: string) => {
      metrics.connectionsCut.inc({ reason })
      log.warn({ remoteAddress, reason, detail }, 'connection closed')
      stream.destroy()
    }
    const endForOthers = () =>
      end('overload', 'its message was incomplete, or not read, for longer than all others')
    const beforeAnswer = unanswered.countBytes(endForOthers)
    const afterwards = answered.countBytes(endForOthers)
    const free = () => {
      beforeAnswer.free()
      afterwards.free()
    }
    let bytes = 0
    // Counts bytes before the WebSocket gets them. Each complete message sets the count back to 0.
    socket.prependListener('data', (chunk: Buffer) => {
      bytes += chunk.length
      const place = stream.isAnswered ? afterwards : beforeAnswer
      place.grow(chunk.length + pieceCostBytes)
      if (!stream.isAnswered && bytes > maxConnectBytes + readBytes) {
        end('protocol', `message of more than ${maxConnectBytes} bytes before log-in`)
      }
    })
    websocket.on('message', () => {
      bytes = 0
      // While the broker works on a packet, it does not read. The message then stays in the stream, and still counts
      // for the limit of all messages together.
      if (stream.readableLength === 0) free()
    })
    stream.onRead = free
    socket.once('close', free)
  }

  function noPlace(socket: Duplex, remoteAddress: string): ErrorStatus | undefined {
    const place = bounds.enter()
    if (place?.belongsTo(remoteAddress)) {
      socket.once('close', place.leave)
      return undefined
    }
    place?.leave()
    const reason = place ? 'max-connections-per-address' : 'max-connections'
    metrics.connectionsRefused.inc({ reason })
    warnOfRefused(`${reason} ${remoteAddress}`, { remoteAddress, reason })
    return 503
  }
}

/** The status that refuses a request because it is no upgrade to MQTT, or undefined. */
function statusOfRefusal({ method, url = '', headers }: IncomingMessage): ErrorStatus | undefined {
  // A request for another upgrade on an existing route gets 400: 404 would say that there is no such route.
  if (headers.upgrade?.toLowerCase() !== 'websocket') return 400
  if (method !== 'GET' || url.split('?')[0] !== websocketPath) return 404
  const offered = headers['sec-websocket-protocol']?.split(',').map((name) => name.trim()) ?? []
  return offered.includes(subProtocol) ? undefined : 400 // [MQTT-6.0.0-3]
}

/** The bytes of a WebSocket. Its messages may be cut anywhere between or within packets (MQTT 3.1.1 §6). */
class WebSocketStream extends Duplex {
  readonly #websocket: WebSocket
  /** The broker has answered the CONNECT, so the limit for a CONNECT no longer holds. */
  isAnswered = false
  /** Called when the broker reads the messages that have arrived. */
  onRead = () => {}

  constructor(websocket: WebSocket) {
    super()
    this.#websocket = websocket
    websocket.binaryType = 'nodebuffer'
    websocket.on('message', (data, isBinary) => {
      // [MQTT-6.0.0-1]
      if (!isBinary || !Buffer.isBuffer(data)) return void this.destroy()
      if (!this.push(data)) websocket.pause()
    })
    websocket.on('error', () => this.destroy())
    websocket.on('close', () => {
      this.push(null)
      this.destroy()
    })
  }

  override _read(): void {
    this.onRead()
    if (this.#websocket.isPaused) this.#websocket.resume()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.isAnswered = true
    this.#websocket.send(chunk, done)
  }

  /** Chunks that are written together become one message. */
  override _writev(
    chunks: { chunk: Buffer; encoding: BufferEncoding }[],
    done: (error?: Error | null) => void,
  ): void {
    this.isAnswered = true
    this.#websocket.send(Buffer.concat(chunks.map(({ chunk }) => chunk)), done)
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#websocket.close(1000)
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#websocket.terminate()
    done(error)
  }
}
