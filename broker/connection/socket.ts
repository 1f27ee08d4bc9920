import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { replacePush } from '../../listener/node-internals.ts'
import { packetType } from './protocol.ts'

/**
 * Time after which a peer counts as stuck, milliseconds. A peer whose buffer is more than half full has this time to
 * bring it down to `paceBytes`. While messages wait in `paced`, the peer must also take a packet now and then: within
 * `frozenMs` for every `paceBytes` in its buffer.
 */
const frozenMs = 10_000
/** Retained and queued messages wait while more bytes than this are in the buffer. */
const maxPaceBytes = 16 * 1024
/**
 * The memory that a write takes besides its bytes. A packet of fewer bytes than this counts for its length plus this
 * number: a million answers of two bytes take more than two megabytes.
 */
const writeCostBytes = 64
const pubackBytes = 4

/**
 * The bounded buffer of the bytes for one peer. `write` never waits. The socket sends the first packet at once. Until
 * the network has taken that packet, the socket collects further packets, and then writes them together. No packet
 * needs a timer. Only a small packet, and a packet that raises the buffer above `paceBytes`, needs a callback. Calls
 * `stuck` with a reason if the peer has stopped reading.
 *
 * Does not use the event `drain`: a stream emits it only if its high-water mark was reached, and this mark differs
 * between Node versions and kinds of streams.
 *
 * A class, not a closure: one message to thousands of peers uses thousands of instances. The fields of an object lie
 * together in memory. The variables of a closure may lie apart, and fetching them would take longer than the work.
 */
export class OutgoingBuffer {
  /** `paced` waits while more bytes than this are buffered: messages that can wait must not fill a small buffer. */
  readonly paceBytes: number
  readonly #socket: Duplex
  readonly #limitBytes: number
  readonly #stuck: (detail: string) => void
  /** True for a TLS socket: if its buffer is empty, it encrypts before `write` returns, so lent bytes need no copy. */
  readonly #takesAtOnce: boolean
  #smallWrites = 0
  #frozenTimer: NodeJS.Timeout | undefined
  /** The calls of `paced` that wait. Each checks the buffer again when the network has taken a packet. */
  #waitingForRoom: (() => void)[] | undefined

  constructor(socket: Duplex, limitBytes: number, stuck: (detail: string) => void) {
    this.paceBytes = Math.min(maxPaceBytes, limitBytes / 4)
    this.#socket = socket
    this.#limitBytes = limitBytes
    this.#stuck = stuck
    this.#takesAtOnce = socket instanceof TLSSocket
  }

  /** Bytes in the buffer: written, and not yet taken by the network. */
  get pendingBytes(): number {
    return this.#socket.writableLength
  }

  /** Whether the buffer has room for a packet of this many bytes. */
  hasRoom(bytes: number): boolean {
    if (!this.#socket.writable) return true // the peer is gone: `write` discards the packet
    const waiting = this.#socket.writableLength
    // An empty buffer takes a packet of any size. Otherwise a message above the limit could never be sent.
    return waiting === 0 || waiting + this.#smallWrites * writeCostBytes + bytes <= this.#limitBytes
  }

  /** Writes one packet. Call it only if `hasRoom` is true. `isLent`: the caller may change the bytes after the call. */
  write(bytes: Buffer, isLent = false): void {
    const socket = this.#socket
    if (!socket.writable) return // the peer is gone, but the hub still answers its earlier packets
    const before = socket.writableLength
    if (before + this.#smallWrites * writeCostBytes + bytes.length > this.#limitBytes / 2) {
      this.#frozenTimer ??= this.#stuckAfter(frozenMs)
    }
    const own = isLent && !(this.#takesAtOnce && before === 0) ? Buffer.from(bytes) : bytes
    if (bytes.length < writeCostBytes) {
      this.#smallWrites++
      socket.write(own, () => {
        this.#smallWrites--
        this.#taken()
      })
    } else if (before + bytes.length > this.paceBytes) {
      socket.write(own, () => this.#taken())
    } else {
      socket.write(own)
    }
  }

  #taken(): void {
    this.#endPauses()
    // Each packet that leaves more than `paceBytes` in the buffer has a callback. The callback of the last such packet
    // ends the timer.
    if (this.#socket.writableLength <= this.paceBytes) this.#endFrozen()
  }

  /**
   * Resolves, perhaps at once, when at most `paceBytes` are in the buffer or the connection is not open. Calls `stuck`
   * if the network takes no packet for too long: `frozenMs` for every `paceBytes` in the buffer, so that a slow peer
   * has time for a large message.
   */
  async paced(isOpen: () => boolean): Promise<void> {
    while (isOpen() && this.#socket.writableLength > this.paceBytes) {
      const timer = this.#stuckAfter(Math.round((frozenMs * this.#socket.writableLength) / this.paceBytes))
      await new Promise<void>((resolve) => {
        this.#waitingForRoom ??= []
        this.#waitingForRoom.push(resolve)
      })
      clearTimeout(timer)
    }
  }

  #stuckAfter(ms: number): NodeJS.Timeout {
    return setTimeout(this.#stuck, ms, `not read for ${ms} ms`).unref()
  }

  /** Call this when the connection ends. Ends the waits of `paced` and the timer for `stuck`. */
  endWaits(): void {
    this.#endPauses()
    this.#endFrozen()
  }

  #endPauses(): void {
    const waiting = this.#waitingForRoom
    this.#waitingForRoom = undefined
    for (const resolve of waiting ?? []) resolve()
  }

  #endFrozen(): void {
    clearTimeout(this.#frozenTimer)
    this.#frozenTimer = undefined
  }
}

/**
 * Takes the PUBACKs at the front of the bytes that a socket has read, before the bytes enter the socket's stream. This
 * saves CPU time, because subscribers send hardly anything else. Calls `take` for each PUBACK. If `take` returns false,
 * this PUBACK and all bytes after it enter the stream.
 */
export function takePubacksAhead(socket: Duplex, take: (packetId: number) => boolean): void {
  replacePush(socket, (push) => (chunk, encoding) => {
    // Bytes that the stream still holds come first.
    if (chunk === null || socket.readableLength > 0) return push(chunk, encoding)
    let taken = 0
    while (isPuback(chunk, taken) && take(chunk.readUInt16BE(taken + 2))) taken += pubackBytes
    if (taken === 0) return push(chunk, encoding)
    return taken === chunk.length || push(chunk.subarray(taken))
  })
}

/** Whether a whole, well-formed PUBACK begins at this offset. */
function isPuback(bytes: Buffer, at: number): boolean {
  if (bytes.length < at + pubackBytes) return false
  if (bytes[at] !== packetType.puback << 4 || bytes[at + 1] !== 2) return false
  return bytes[at + 2] !== 0 || bytes[at + 3] !== 0 // [MQTT-2.3.1-1]
}
