/** Control packet types, MQTT 3.1.1 §2.2.1. */
export const packetType = {
  connect: 1,
  connack: 2,
  publish: 3,
  puback: 4,
  pubrec: 5,
  pubrel: 6,
  pubcomp: 7,
  subscribe: 8,
  suback: 9,
  unsubscribe: 10,
  unsuback: 11,
  pingreq: 12,
  pingresp: 13,
  disconnect: 14,
} as const

/** Return codes of CONNACK, MQTT 3.1.1 §3.2.2.3. */
export const connackCode = {
  accepted: 0,
  unacceptableVersion: 1,
  identifierRejected: 2,
  serverUnavailable: 3,
  badCredentials: 4,
  notAuthorized: 5,
} as const

export type Qos = 0 | 1 | 2

export function lowerQos(a: Qos, b: Qos): Qos {
  return a < b ? a : b
}

/** A message as PUBLISH packets. All subscribers with the same QoS and flags share one encoding. */
export interface Publish {
  /**
   * The encoded packet. `packetId` is required at QoS 1 and 2. The caller must use or copy the bytes before the next
   * call, which may write another packet identifier into the same buffer.
   */
  packet(qos: Qos, flags: PublishFlags, packetId?: number): Buffer
}

export interface PublishFlags {
  retain?: boolean
  dup?: boolean
}

/** Prepares a message for sending. `topic` has at most 65,535 bytes in UTF-8. */
export function preparePublish(topic: string, payload: Buffer): Publish {
  /** The encodings made so far. The index is the flags of the fixed header (DUP, QoS, RETAIN). */
  const encodings: (Encoding | undefined)[] = []
  return {
    packet(qos, flags, packetId = 0) {
      const bits = (flags.dup ? 8 : 0) | (qos << 1) | (flags.retain ? 1 : 0)
      let encoding = encodings[bits]
      if (!encoding) {
        encoding = encodePublish(bits, topic, payload)
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

function encodePublish(flags: number, topic: string, payload: Buffer): Encoding {
  const header = (packetType.publish << 4) | flags
  const nameLength = Buffer.byteLength(topic)
  const idLength = (header & 0b110) === 0 ? 0 : 2
  const remaining = 2 + nameLength + idLength + payload.length
  const length = encodeLength(remaining)
  const bytes = Buffer.allocUnsafe(1 + length.length + remaining)
  bytes[0] = header
  length.copy(bytes, 1)
  bytes.writeUInt16BE(nameLength, 1 + length.length)
  const idAt = 1 + length.length + 2 + bytes.write(topic, 1 + length.length + 2)
  payload.copy(bytes, idAt + idLength)
  return { bytes, idAt }
}

/** Encodes the Remaining Length of a packet, MQTT 3.1.1 §2.2.3. */
export function encodeLength(length: number): Buffer {
  const bytes: number[] = []
  let rest = length
  do {
    const low = rest % 128
    rest = Math.floor(rest / 128)
    bytes.push(rest > 0 ? low | 128 : low)
  } while (rest > 0)
  return Buffer.from(bytes)
}

export const pingresp = Buffer.of(packetType.pingresp << 4, 0)

/** PUBREL; its reserved flags are 0010 [MQTT-3.6.1-1]. */
export function encodePubrel(packetId: number): Buffer {
  return Buffer.of((packetType.pubrel << 4) | 2, 2, packetId >> 8, packetId & 0xff)
}

/** SUBACK with a return code for each filter: the granted QoS, or 0x80 for a refused filter [MQTT-3.8.4-5]. */
export function encodeSuback(packetId: number, returnCodes: readonly number[]): Buffer {
  const length = encodeLength(2 + returnCodes.length)
  return Buffer.from([packetType.suback << 4, ...length, packetId >> 8, packetId & 0xff, ...returnCodes])
}

export function encodeUnsuback(packetId: number): Buffer {
  return Buffer.of(packetType.unsuback << 4, 2, packetId >> 8, packetId & 0xff)
}

/** CONNACK for a CONNECT that the connection refuses without asking Aedes. The session present flag is 0. */
export function encodeConnackRefusal(returnCode: number): Buffer {
  return Buffer.of(packetType.connack << 4, 2, 0, returnCode)
}
