import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { readAhead } from '../../listener/node-internals.ts'
import { packetType } from './wire.ts'

/** If a buffer more than half full is not emptied in this time, its subscriber has stopped reading; milliseconds. */
const frozenMs = 10_000
/** Retained and queued messages wait while more than this is on its way, bytes. */
const maxPaceBytes = 16 * 1024
/** Bytes that a small packet counts for beside its own: a million answers of two bytes take more than two megabytes. */
const writeCostBytes = 64
const pubackBytes = 4

/**
 * The bytes on their way to one peer: bounded, and no caller waits for them. The first packet is sent at once. Packets
 * that come before the network has taken the first are written together afterwards, as streams do. No packet needs a
 * timer, and only a small one needs a callback. `stuck` is called with a reason when the peer has stopped reading.
 *
 * A class, not a closure: there are thousands of instances, and each packet uses another one. The fields of an object
 * lie together in memory. Fetching fields that lie apart would cost more than the work.
 */
export class Outgoing {
  /** Bytes that may be sent in one go: messages that can wait must not fill a small buffer. */
  readonly paceBytes: number
  readonly #socket: Duplex
  readonly #limitBytes: number
  readonly #stuck: (detail: string) => void
  /** A TLS socket with an empty buffer encrypts bytes before `write` returns: they may change afterwards. */
  readonly #takesAtOnce: boolean
  #smallWrites = 0
  #frozenTimer: NodeJS.Timeout | undefined
  #waitingForRoom: (() => void)[] | undefined

  constructor(socket: Duplex, limitBytes: number, stuck: (detail: string) => void) {
    this.paceBytes = Math.min(maxPaceBytes, limitBytes / 4)
    this.#socket = socket
    this.#limitBytes = limitBytes
    this.#stuck = stuck
    this.#takesAtOnce = socket instanceof TLSSocket
    socket.on('drain', () => this.close())
  }

  /** Bytes written and not yet taken by the network. */
  get pendingBytes(): number {
    return this.#socket.writableLength
  }

  /** Whether a packet of so many bytes may be written: not while the buffer is full. */
  hasRoom(bytes: number): boolean {
    if (!this.#socket.writable) return true // the peer is gone: nothing piles up
    const waiting = this.#socket.writableLength
    // The first packet always fits: a buffer smaller than the largest message must not lock anyone out.
    return waiting === 0 || waiting + this.#smallWrites * writeCostBytes + bytes <= this.#limitBytes
  }

  /** Writes one packet that there is room for. `isLent`: the caller is about to change the bytes. */
  write(bytes: Buffer, isLent = false): void {
    const socket = this.#socket
    if (!socket.writable) return // the peer is gone, and its packets are still being worked on
    const before = socket.writableLength
    if (before + this.#smallWrites * writeCostBytes + bytes.length > this.#limitBytes / 2) {
      this.#frozenTimer ??= setTimeout(this.#stuck, frozenMs, `not read for ${frozenMs} ms`).unref()
    }
    const own = isLent && !(this.#takesAtOnce && before === 0) ? Buffer.from(bytes) : bytes
    if (bytes.length < writeCostBytes) {
      this.#smallWrites++
      socket.write(own, () => {
        this.#smallWrites--
      })
    } else {
      socket.write(own)
    }
  }

  /** Resolves when more may be written without piling up, at once where nothing waits. */
  async paced(isOpen: () => boolean): Promise<void> {
    while (isOpen() && this.#socket.writableLength > this.paceBytes) {
      await new Promise<void>((resolve) => {
        this.#waitingForRoom ??= []
        this.#waitingForRoom.push(resolve)
      })
    }
  }

  /** Call it when everything is written, or nothing more will be written: callers that wait go on. */
  close(): void {
    clearTimeout(this.#frozenTimer)
    this.#frozenTimer = undefined
    const waiting = this.#waitingForRoom ?? []
    this.#waitingForRoom = undefined
    for (const resolve of waiting) resolve()
  }
}

/**
 * Takes the PUBACKs at the front of the bytes that a socket has read, before they enter its stream: subscribers send
 * hardly anything else. `take` is called for each PUBACK, and answers false if the PUBACK cannot be taken yet.
 */
export function takePubacksAhead(socket: Duplex, take: (packetId: number) => boolean): void {
  readAhead(socket, (chunk) => {
    let taken = 0
    while (isPuback(chunk, taken) && take(chunk.readUInt16BE(taken + 2))) taken += pubackBytes
    return taken
  })
}

/** Whether a whole, well-formed PUBACK begins at this offset. */
function isPuback(bytes: Buffer, at: number): boolean {
  if (bytes.length < at + pubackBytes) return false
  if (bytes[at] !== packetType.puback << 4 || bytes[at + 1] !== 2) return false
  return bytes[at + 2] !== 0 || bytes[at + 3] !== 0 // [MQTT-2.3.1-1]
}
