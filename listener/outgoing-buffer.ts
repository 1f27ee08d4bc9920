import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'

/**
 * Milliseconds in which a buffer that gets more than half full must fall to `paceBytes`. While `paced` waits, a slow
 * peer gets more time: this many milliseconds for every `paceBytes` in the buffer.
 */
const frozenMs = 10_000
/** Retained and queued messages wait while more bytes than this are in the buffer. */
const maxPaceBytes = 16 * 1024
/**
 * Bytes of memory that a write takes besides its content. The limit also counts these bytes for tiny packets: millions
 * of tiny answers could fill memory. A packet with fewer bytes than this number is tiny.
 */
const writeCostBytes = 64

/** `slow`: the peer reads too slowly, and must be cut off. `dropped`: a QoS 0 message found no room. */
interface BufferEvents {
  slow: (detail: string) => void
  dropped: () => void
}

/**
 * The bounded buffer of the bytes for one peer. `write` never waits.
 *
 * The buffer does not use `drain`, which depends on a high-water mark. The mark differs between Node versions and kinds
 * of streams.
 *
 * A class, because the fields of an object lie together in memory. One message uses thousands of buffers.
 */
export class OutgoingBuffer {
  /** `paced` waits above this number: messages that can wait must not fill a small buffer. */
  readonly paceBytes: number
  /** Sees what is written, and must not keep it: the caller may change lent bytes. */
  watch: ((bytes: Buffer) => void) | undefined
  readonly #socket: Duplex
  readonly #limitBytes: number
  readonly #events: BufferEvents
  /** A TLS socket with an empty buffer encrypts before `write` returns: lent bytes need no copy. */
  readonly #takesAtOnce: boolean
  #smallWrites = 0
  #frozenTimer: NodeJS.Timeout | undefined
  #waitingForRoom: (() => void)[] | undefined
  #isClosed = false

  constructor(socket: Duplex, limitBytes: number, events: BufferEvents) {
    this.paceBytes = Math.min(maxPaceBytes, limitBytes / 4)
    this.#socket = socket
    this.#limitBytes = limitBytes
    this.#events = events
    this.#takesAtOnce = socket instanceof TLSSocket
    this.watch = undefined
  }

  /** Bytes in the buffer: written, and not yet taken by the network. */
  get pendingBytes(): number {
    return this.#socket.writableLength
  }

  /** Whether the buffer takes a packet of this many bytes. If not, a message at QoS 0 is dropped, others cut the peer off. */
  accepts(bytes: number, qos: 0 | 1 | 2): boolean {
    if (this.hasRoom(bytes)) return true
    if (qos === 0) this.#events.dropped()
    else this.#events.slow(`${this.pendingBytes} bytes waiting`)
    return false
  }

  /** Whether the buffer takes a packet of this many bytes, or the peer is gone. */
  hasRoom(bytes: number): boolean {
    const waiting = this.#socket.writableLength
    // An empty buffer takes a packet of any size. Otherwise a message above the limit could never be sent.
    if (waiting === 0 || waiting + this.#smallWrites * writeCostBytes + bytes <= this.#limitBytes) return true
    return !this.#socket.writable // the peer is gone: `write` discards the packet
  }

  /** Writes a packet that the buffer accepts. `isLent`: the caller may change the bytes afterwards. */
  write(bytes: Buffer, isLent = false): void {
    const socket = this.#socket
    if (!socket.writable) return // the peer is gone, but the hub still answers its earlier packets
    this.watch?.(bytes)
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
    // Every packet that fills the buffer beyond `paceBytes` has a callback. The last of these callbacks ends the timer.
    if (this.#socket.writableLength <= this.paceBytes) this.#endFrozen()
  }

  /**
   * Resolves when at most `paceBytes` are buffered, or the buffer is closed. Cuts the peer off if the network takes
   * no packet for too long: a slow peer gets `frozenMs` for every `paceBytes`.
   */
  async paced(): Promise<void> {
    while (!this.#isClosed && this.#socket.writableLength > this.paceBytes) {
      const timer = this.#stuckAfter(Math.round((frozenMs * this.#socket.writableLength) / this.paceBytes))
      await new Promise<void>((resolve) => {
        this.#waitingForRoom ??= []
        this.#waitingForRoom.push(resolve)
      })
      clearTimeout(timer)
    }
  }

  #stuckAfter(ms: number): NodeJS.Timeout {
    return setTimeout(this.#events.slow, ms, `not read for ${ms} ms`).unref()
  }

  /** Ends waits and timers. */
  close(): void {
    this.#isClosed = true
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
