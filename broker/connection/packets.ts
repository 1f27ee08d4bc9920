import { encodeLength, type Frame } from './frames.ts'
import { packetType, type Qos } from './protocol.ts'

/*
 * Reads packets with topic filters, and encodes answers to clients. PUBLISH is in `frames.ts`, CONNECT in
 * `connect-packet.ts`.
 */

export const pingresp = Buffer.of(packetType.pingresp << 4, 0)

/** PUBREL; its reserved flags are 0010 [MQTT-3.6.1-1]. */
export function encodePubrel(packetId: number): Buffer {
  return Buffer.of((packetType.pubrel << 4) | 2, 2, packetId >> 8, packetId & 0xff)
}

/** PUBACK, PUBREC or PUBCOMP. */
export function encodeAcknowledgement(type: number, packetId: number): Buffer {
  return Buffer.of(type << 4, 2, packetId >> 8, packetId & 0xff)
}

/** PUBACK, PUBREC or PUBCOMP, as it came in. */
export function acknowledgementFrame(type: number, packetId: number): Frame {
  const bytes = encodeAcknowledgement(type, packetId)
  return { type, flags: 0, body: bytes.subarray(2), bytes }
}

/** SUBACK with a return code for each filter: the granted QoS, or 0x80 for a refused filter [MQTT-3.8.4-5]. */
export function encodeSuback(packetId: number, returnCodes: readonly number[]): Buffer {
  const length = encodeLength(2 + returnCodes.length)
  return Buffer.from([packetType.suback << 4, ...length, packetId >> 8, packetId & 0xff, ...returnCodes])
}

export function encodeUnsuback(packetId: number): Buffer {
  return Buffer.of(packetType.unsuback << 4, 2, packetId >> 8, packetId & 0xff)
}

/** CONNACK for a CONNECT that Aedes does not get. The session present flag is 0. */
export function encodeConnackRefusal(returnCode: number): Buffer {
  return Buffer.of(packetType.connack << 4, 2, 0, returnCode)
}

/** The fields of a SUBSCRIBE or UNSUBSCRIBE that `FrameReader` has checked. */
export interface FiltersFrame {
  packetId: number
  /** In the order of the packet, perhaps with repetitions. `qos` is 0 in an UNSUBSCRIBE. */
  filters: { filter: string; qos: Qos }[]
}

/** Reads a SUBSCRIBE or UNSUBSCRIBE that `FrameReader` has checked. */
export function readFilters({ type, body }: Frame): FiltersFrame {
  const filters: FiltersFrame['filters'] = []
  let at = 2
  while (at < body.length) {
    const end = at + 2 + body.readUInt16BE(at)
    const filter = body.toString('utf8', at + 2, end)
    const requested = type === packetType.subscribe ? body[end] : 0
    filters.push({ filter, qos: requested === 2 ? 2 : requested === 1 ? 1 : 0 })
    at = type === packetType.subscribe ? end + 1 : end
  }
  return { packetId: body.readUInt16BE(0), filters }
}

/** How many filters are in a SUBSCRIBE or UNSUBSCRIBE that `FrameReader` has checked. */
export function countFilters({ type, body }: Frame): number {
  const optionBytes = type === packetType.subscribe ? 1 : 0
  let count = 0
  for (let at = 2; at < body.length; at += 2 + body.readUInt16BE(at) + optionBytes) count++
  return count
}
