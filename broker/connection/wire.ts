/** Control packet types of MQTT 3.1.1 §2.2.1 that this broker names. */
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

/** One PUBLISH, encoded once per QoS and flags however many subscribers it goes to. */
export interface Publish {
  /**
   * The packet for a subscriber of `qos`; `packetId` is required above QoS 0. The bytes of the packet are lent: the
   * next call may write another identifier into them.
   */
  packet(qos: Qos, flags: PublishFlags, packetId?: number): Buffer
}

export interface PublishFlags {
  retain?: boolean
  dup?: boolean
}

/** Prepares the encodings of a message. `topic` is at most 65,535 bytes of UTF-8. */
export function preparePublish(topic: string, payload: Buffer): Publish {
  /** By the flags of the fixed header. */
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
      // The packets of two subscribers differ in two bytes: thousands of copies would keep the garbage collector busy.
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

/** Remaining Length, MQTT 3.1.1 §2.2.3. */
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

/** SUBACK with a return code for each filter, 0x80 for refused ones [MQTT-3.8.4-5]. */
export function encodeSuback(packetId: number, returnCodes: readonly number[]): Buffer {
  const length = encodeLength(2 + returnCodes.length)
  return Buffer.from([packetType.suback << 4, ...length, packetId >> 8, packetId & 0xff, ...returnCodes])
}

export function encodeUnsuback(packetId: number): Buffer {
  return Buffer.of(packetType.unsuback << 4, 2, packetId >> 8, packetId & 0xff)
}

/** CONNACK without a session, for a CONNECT that the connection refuses by itself. */
export function encodeConnackRefusal(returnCode: number): Buffer {
  return Buffer.of(packetType.connack << 4, 2, 0, returnCode)
}
