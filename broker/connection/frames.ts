import { isUtf8 } from 'node:buffer'
import type { Collected } from '../../listener/half-received.ts'
import { ProtocolViolation, packetType, type Qos, reservedFlags } from './protocol.ts'

/** One whole control packet as it came over the wire. */
export interface Frame {
  type: number
  flags: number
  /** Variable header and payload. */
  body: Buffer
  /** The packet with its fixed header. */
  bytes: Buffer
}

/**
 * Cuts a byte stream into control packets, and checks each packet. If a packet must close the connection, `next` throws
 * a `ProtocolViolation` [MQTT-4.8.0-1].
 *
 * - `maxBytes`: returns the largest size of a packet. It is called for each packet, because a log-in changes the limit.
 *   A larger packet is refused before the hub buffers it.
 * - `collect`: begins to collect a packet of which only a part has arrived.
 * - `maxFilters`: maximum number of topic filters in one SUBSCRIBE or UNSUBSCRIBE.
 */
export class FrameReader {
  readonly #maxBytes: () => number
  readonly #collect: () => Collected
  readonly #maxFilters: number
  #unfinished: Collected | undefined
  /** Size of the whole unfinished packet, bytes. 0: its header is not complete yet. */
  #expected = 0
  /** Pushed bytes that `next` has not read yet. */
  #rest: Buffer = empty

  constructor(maxBytes: () => number, collect: () => Collected, maxFilters: number) {
    this.#maxBytes = maxBytes
    this.#collect = collect
    this.#maxFilters = maxFilters
  }

  /** False: the rest of a packet has not arrived yet. */
  isBetweenPackets(): boolean {
    return this.#unfinished === undefined
  }

  /** Whether there are bytes that `next` has not read. */
  hasRest(): boolean {
    return this.#rest.length > 0
  }

  push(chunk: Buffer): void {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
  }

  /** Reads the next packet. Undefined: it has not arrived completely. */
  next(): Frame | undefined {
    if (this.#rest.length === 0) return undefined
    return this.#unfinished ? this.#proceed(this.#unfinished, this.#rest) : this.#begin(this.#rest)
  }

  /**
   * Bytes of memory in use by `part` (of the last packet) and by the unread bytes. A slice keeps its whole buffer.
   */
  memoryOf(part: Buffer): number {
    const behind = this.#rest.buffer === part.buffer ? 0 : this.#rest.buffer.byteLength
    return part.buffer.byteLength + behind
  }

  /** Discards the unfinished packet and all unread bytes. */
  close(): void {
    this.#unfinished?.free()
    this.#unfinished = undefined
    this.#rest = empty
  }

  /** An unfinished packet is copied: a slice would keep the chunk in memory. */
  #begin(chunk: Buffer): Frame | undefined {
    const header = readFixedHeader(chunk)
    if (header) this.#checkSize(chunk, header.total)
    if (header && header.total <= chunk.length) {
      this.#keepRest(chunk, header.total)
      return toFrame(chunk.subarray(0, header.total), header.bodyAt, this.#maxFilters)
    }
    this.#unfinished = this.#collect()
    this.#expected = header?.total ?? 0
    this.#unfinished.add(chunk, this.#expected)
    this.#rest = empty
    return undefined
  }

  #proceed(packet: Collected, chunk: Buffer): Frame | undefined {
    if (this.#expected === 0) {
      const start = Buffer.concat([packet.bytes(), chunk.subarray(0, maxHeaderBytes)])
      const header = readFixedHeader(start)
      if (header) this.#checkSize(start, header.total)
      this.#expected = header?.total ?? 0
    }
    const missing = this.#expected === 0 ? chunk.length : this.#expected - packet.length
    if (!packet.add(chunk.subarray(0, missing), this.#expected)) {
      throw new ProtocolViolation(`packet in pieces that are too small: ${packet.length} bytes so far`, true)
    }
    this.#keepRest(chunk, missing)
    if (this.#expected === 0 || packet.length < this.#expected) return undefined
    packet.free()
    this.#unfinished = undefined
    const bytes = packet.bytes()
    return toFrame(bytes, readFixedHeader(bytes)?.bodyAt ?? 2, this.#maxFilters)
  }

  /** Keeps the unread end of a chunk. Even an empty slice would keep the chunk in memory. */
  #keepRest(chunk: Buffer, from: number): void {
    this.#rest = from < chunk.length ? chunk.subarray(from) : empty
  }

  #checkSize(start: Buffer, total: number): void {
    checkFixedHeader(start[0] ?? 0)
    const limit = this.#maxBytes()
    if (total > limit) throw new ProtocolViolation(`packet of ${total} bytes, at most ${limit} allowed`)
  }
}

const empty = Buffer.alloc(0)
/** The longest fixed header: a byte of type and flags, and four bytes of remaining length (MQTT 3.1.1 §2.2). */
const maxHeaderBytes = 5

function readFixedHeader(bytes: Buffer): { bodyAt: number; total: number } | undefined {
  let length = 0
  for (let index = 1; index <= 4; index++) {
    const byte = bytes[index]
    if (byte === undefined) return undefined
    length += (byte & 127) * 128 ** (index - 1)
    if (byte < 128) return { bodyAt: index + 1, total: index + 1 + length }
  }
  throw new ProtocolViolation('remaining length of more than four bytes')
}

function toFrame(bytes: Buffer, bodyAt: number, maxFilters: number): Frame {
  const first = bytes[0] ?? 0
  const frame = { type: first >> 4, flags: first & 15, body: bytes.subarray(bodyAt), bytes }
  const problem = checkBody(frame, maxFilters)
  if (problem) throw new ProtocolViolation(problem)
  return frame
}

function checkFixedHeader(first: number): void {
  const flags = reservedFlags[first >> 4]
  if (flags === undefined) throw new ProtocolViolation(`packet type ${first >> 4} is not for clients`)
  // [MQTT-2.2.2-2]
  if (flags !== 'own' && flags !== (first & 15))
    throw new ProtocolViolation('reserved flags are not as required')
}

function checkBody(frame: Frame, maxFilters: number): string | undefined {
  const { type, body } = frame
  switch (type) {
    case packetType.publish:
      return checkPublish(frame)
    case packetType.puback:
    case packetType.pubrec:
    case packetType.pubrel:
    case packetType.pubcomp:
      return body.length === 2 ? checkPacketId(body, 0) : 'acknowledgement is not two bytes long'
    case packetType.subscribe:
      return checkFilters(body, 1, maxFilters)
    case packetType.unsubscribe:
      return checkFilters(body, 0, maxFilters)
    case packetType.pingreq:
    case packetType.disconnect:
      return body.length === 0 ? undefined : 'packet must be empty'
    default:
      return undefined // `judgeConnect` checks a CONNECT
  }
}

function checkPublish({ flags, body }: Frame): string | undefined {
  const qos = (flags >> 1) & 3
  if (qos === 3) return 'QoS 3 does not exist' // [MQTT-3.3.1-4]
  if (qos === 0 && (flags & 8) !== 0) return 'DUP is set at QoS 0' // [MQTT-3.3.1-2]
  const topic = readText(body, 0)
  if ('problem' in topic) return `topic: ${topic.problem}`
  if (topic.bytes.length === 0) return 'topic is empty' // [MQTT-4.7.3-1]
  if (topic.bytes.includes('+') || topic.bytes.includes('#')) return 'topic has a wildcard' // [MQTT-3.3.2-2]
  return qos > 0 ? checkPacketId(body, topic.end) : undefined
}

/** The fields of a PUBLISH that `FrameReader` has checked. */
export interface PublishFrame {
  topic: string
  payload: Buffer
  qos: Qos
  retain: boolean
  /** 0 at QoS 0. */
  packetId: number
}

/**
 * Reads a PUBLISH that `FrameReader` has checked. `isAllowed` false: drops the payload and cuts the topic. A
 * client without permission to publish must not fill memory.
 */
export function readPublish({ flags, body }: Frame, isAllowed: boolean): PublishFrame {
  const bits = (flags >> 1) & 3
  const qos = bits === 2 ? 2 : bits === 1 ? 1 : 0
  const topicEnd = 2 + body.readUInt16BE(0)
  return {
    topic: body.toString('utf8', 2, isAllowed ? topicEnd : Math.min(topicEnd, 2 + shownTopicBytes)),
    payload: isAllowed ? body.subarray(topicEnd + (qos > 0 ? 2 : 0)) : empty,
    qos,
    retain: (flags & 1) !== 0,
    packetId: qos > 0 ? body.readUInt16BE(topicEnd) : 0,
  }
}

const shownTopicBytes = 200

function checkFilters(body: Buffer, optionBytes: number, maxFilters: number): string | undefined {
  const problem = checkPacketId(body, 0)
  if (problem) return problem
  if (body.length === 2) return 'no topic filter' // [MQTT-3.8.3-3], [MQTT-3.10.3-2]
  let at = 2
  for (let count = 1; at < body.length; count++) {
    if (count > maxFilters) return `more than ${maxFilters} topic filters`
    const filter = readText(body, at)
    if ('problem' in filter) return `topic filter: ${filter.problem}`
    if (filter.bytes.length === 0) return 'topic filter is empty' // [MQTT-4.7.3-1]
    at = filter.end + optionBytes
    if (at > body.length) return 'packet is truncated'
    if (optionBytes === 1 && (body[at - 1] ?? 0) > 2) return 'requested QoS is not 0, 1 or 2' // [MQTT-3.8.3-4]
  }
  return undefined
}

function checkPacketId(body: Buffer, at: number): string | undefined {
  if (body.length < at + 2) return 'packet is truncated'
  return body.readUInt16BE(at) === 0 ? 'packet identifier is 0' : undefined // [MQTT-2.3.1-1]
}

/**
 * A UTF-8 string field (MQTT 3.1.1 §1.5.3): two bytes of length, then well-formed UTF-8 without U+0000
 * [MQTT-1.5.3-1] [MQTT-1.5.3-2].
 */
export function readText(body: Buffer, at: number): { bytes: Buffer; end: number } | { problem: string } {
  const field = readBytes(body, at)
  if ('problem' in field) return field
  if (!isUtf8(field.bytes)) return { problem: 'not well-formed UTF-8' }
  return field.bytes.includes(0) ? { problem: 'contains U+0000' } : field
}

/** A binary field: two bytes of length, then that many bytes. */
export function readBytes(body: Buffer, at: number): { bytes: Buffer; end: number } | { problem: string } {
  if (body.length < at + 2) return { problem: 'packet is truncated' }
  const end = at + 2 + body.readUInt16BE(at)
  return body.length < end ? { problem: 'packet is truncated' } : { bytes: body.subarray(at + 2, end), end }
}

export function lowerQos(a: Qos, b: Qos): Qos {
  return a < b ? a : b
}

/** A message as PUBLISH packets. All subscribers with the same QoS and flags share one encoding. */
export interface Publish {
  /**
   * The encoded packet. QoS 1 and 2 need a `packetId`. Use or copy the bytes at once: the next call may overwrite the
   * identifier.
   */
  packet(qos: Qos, flags: PublishFlags, packetId?: number): Buffer
}

export interface PublishFlags {
  retain?: boolean
  dup?: boolean
}

/**
 * Prepares a message for sending. `topic` has at most 65,535 bytes in UTF-8. `allocate` returns the bytes for an encoding
 * of this length.
 */
export function preparePublish(
  { topic, payload }: Pick<PublishFrame, 'topic' | 'payload'>,
  allocate: (length: number) => Buffer = Buffer.allocUnsafe,
): Publish {
  const encodings: (Encoding | undefined)[] = []
  return {
    packet(qos, flags, packetId = 0) {
      const bits = (flags.dup ? 8 : 0) | (qos << 1) | (flags.retain ? 1 : 0)
      let encoding = encodings[bits]
      if (!encoding) {
        encoding = encodePublish(bits, topic, payload, allocate)
        encodings[bits] = encoding
      }
      const { bytes, idAt } = encoding
      if (qos === 0) return bytes
      // Only these two bytes differ between subscribers. Thousands of copies would keep the garbage collector busy.
      bytes[idAt] = packetId >> 8
      bytes[idAt + 1] = packetId & 0xff
      return bytes
    },
  }
}

interface Encoding {
  bytes: Buffer
  idAt: number
}

function encodePublish(
  flags: number,
  topic: string,
  payload: Buffer,
  allocate: (length: number) => Buffer,
): Encoding {
  const header = (packetType.publish << 4) | flags
  const nameLength = Buffer.byteLength(topic)
  const idLength = (header & 0b110) === 0 ? 0 : 2
  const remaining = 2 + nameLength + idLength + payload.length
  const lengthBytes = lengthBytesOf(remaining)
  const bytes = allocate(1 + lengthBytes + remaining)
  bytes[0] = header
  const topicAt = writeLength(bytes, 1, remaining)
  bytes.writeUInt16BE(nameLength, topicAt)
  const idAt = topicAt + 2 + bytes.write(topic, topicAt + 2)
  payload.copy(bytes, idAt + idLength)
  return { bytes, idAt }
}

/** Encodes the Remaining Length of a packet, MQTT 3.1.1 §2.2.3. */
export function encodeLength(length: number): Buffer {
  const bytes = Buffer.allocUnsafe(lengthBytesOf(length))
  writeLength(bytes, 0, length)
  return bytes
}

function lengthBytesOf(length: number): number {
  if (length < 128) return 1
  return length < 128 ** 2 ? 2 : length < 128 ** 3 ? 3 : 4
}

/** Returns the index after the length. */
function writeLength(bytes: Buffer, at: number, length: number): number {
  let index = at
  let rest = length
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes[index++] = (rest % 128) | 128
  bytes[index++] = rest
  return index
}
