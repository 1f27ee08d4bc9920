import { cut } from '../../event/cut.ts'
import { type Frame, readBytes, readText } from './frames.ts'
import { connectFlag, packetType } from './protocol.ts'

/** What operators see of a packet: no password, and of payloads and wills only the size. */
export interface DescribedPacket {
  /** Its name in MQTT: `PUBLISH`. */
  packet?: string
  /** The whole packet, bytes. */
  bytes?: number
  packetId?: number
  topic?: string
  qos?: number
  retain?: boolean
  dup?: boolean
  payloadBytes?: number
  /** Of a CONNACK, or of each filter of a SUBACK: 128 is a refused one. */
  returnCodes?: number[]
  /** The topic filters, the first 20. Behind each filter of a SUBSCRIBE: its QoS. */
  filters?: string[]
  /** What the other fields do not say of the packet. */
  text?: string
}

/** Longest text of a packet that is shown, characters. */
const shownText = 200
/** Maximum number of filters and return codes of a packet that are shown. */
const shownFilters = 20
const names = new Map(Object.entries(packetType).map(([name, type]) => [Number(type), name.toUpperCase()]))

/** Describes a packet that came in or goes out, also a wrong CONNECT. */
export function describeFrame(frame: Frame): DescribedPacket {
  const { type, bytes } = frame
  return { packet: names.get(type) ?? `type ${type}`, bytes: bytes.length, ...contentOf(frame) }
}

function contentOf(frame: Frame): DescribedPacket {
  const { type, body } = frame
  switch (type) {
    case packetType.connect:
      return { text: connectText(body) }
    case packetType.connack:
      return { returnCodes: [...body.subarray(1, 2)], text: body[0] === 1 ? 'session present' : 'no session' }
    case packetType.publish:
      return describePublish(frame)
    case packetType.subscribe:
      return { ...packetIdAt(body, 0), ...filtersOf(body, 1) }
    case packetType.unsubscribe:
      return { ...packetIdAt(body, 0), ...filtersOf(body, 0) }
    case packetType.suback:
      return { ...packetIdAt(body, 0), returnCodes: [...body.subarray(2, 2 + shownFilters)] }
    default:
      return packetIdAt(body, 0)
  }
}

function describePublish({ flags, body }: Frame): DescribedPacket {
  const topic = readBytes(body, 0)
  if ('problem' in topic) return { text: topic.problem }
  const qos = (flags >> 1) & 3
  const payloadAt = topic.end + (qos > 0 ? 2 : 0)
  return {
    ...(qos > 0 && packetIdAt(body, topic.end)),
    topic: shown(topic.bytes),
    qos,
    retain: (flags & 1) !== 0,
    dup: (flags & 8) !== 0,
    payloadBytes: Math.max(0, body.length - payloadAt),
  }
}

function packetIdAt(body: Buffer, at: number): { packetId?: number } {
  return body.length < at + 2 ? {} : { packetId: body.readUInt16BE(at) }
}

function filtersOf(body: Buffer, optionBytes: 0 | 1): DescribedPacket {
  const filters: string[] = []
  for (let at = 2; filters.length < shownFilters; ) {
    const filter = readBytes(body, at)
    if ('problem' in filter) break
    const qos = optionBytes === 1 ? ` (QoS ${body[filter.end]})` : ''
    filters.push(`${shown(filter.bytes)}${qos}`)
    at = filter.end + optionBytes
  }
  return { filters }
}

/** The fields of a CONNECT in words, without those that cannot be read. The refusal says what is wrong with them. */
function connectText(body: Buffer): string {
  const start = startOfConnect(body)
  if (!start) return 'not one of MQTT'
  const { protocol, level, flags, keepAlive, clientId } = start
  const has = (flag: number) => (flags & flag) !== 0
  const parts = [
    `${protocol} ${level & 127}`,
    has(connectFlag.cleanSession) ? 'clean session' : 'persistent session',
  ]
  parts.push(`keep alive ${keepAlive} s`)
  let at = clientId?.end ?? body.length
  // Behind the client id, MQTT 5 has other fields.
  if (level === 5) return parts.join(', ')
  if (has(connectFlag.will)) {
    const topic = readBytes(body, at)
    const message = 'problem' in topic ? topic : readBytes(body, topic.end)
    if ('problem' in topic || 'problem' in message) return parts.join(', ')
    const retain = has(connectFlag.willRetain) ? ', retained' : ''
    const about = `QoS ${(flags >> 3) & 3}${retain}, ${message.bytes.length} bytes`
    parts.push(`will to ${shown(topic.bytes)} (${about})`)
    at = message.end
  }
  const username = has(connectFlag.username) ? readBytes(body, at) : undefined
  if (username && 'bytes' in username) parts.push(`user ${shown(username.bytes)}`)
  parts.push(has(connectFlag.password) ? 'with a password' : 'without a password')
  return parts.join(', ')
}

/** The client id of a CONNECT, also of one that is refused. Undefined: there is none, or it cannot be read. */
export function clientIdIn({ type, body }: Frame): string | undefined {
  const field = type === packetType.connect ? startOfConnect(body)?.clientId : undefined
  return field && field.bytes.length > 0 ? field.bytes.toString() : undefined
}

/** The part of a CONNECT that MQTT 3.1, 3.1.1 and 5 have alike, and the client id. */
function startOfConnect(body: Buffer) {
  const name = readBytes(body, 0)
  if ('problem' in name || body.length < name.end + 4) return undefined
  const protocol = name.bytes.toString()
  if (protocol !== 'MQTT' && protocol !== 'MQIsdp') return undefined
  const level = body.readUInt8(name.end)
  const flags = body.readUInt8(name.end + 1)
  const keepAlive = body.readUInt16BE(name.end + 2)
  // In MQTT 5, properties stand before the client id.
  const properties = level === 5 ? readLength(body, name.end + 4) : { length: 0, end: name.end + 4 }
  const clientId = readText(body, properties.end + properties.length)
  return { protocol, level, flags, keepAlive, clientId: 'problem' in clientId ? undefined : clientId }
}

/** The packets in bytes that the hub sends. */
export function* framesIn(bytes: Buffer): Generator<Frame> {
  let at = 0
  while (at + 1 < bytes.length) {
    const first = bytes[at] ?? 0
    const { length, end: bodyAt } = readLength(bytes, at + 1)
    const end = bodyAt + length
    const body = bytes.subarray(bodyAt, end)
    yield { type: first >> 4, flags: first & 15, body, bytes: bytes.subarray(at, end) }
    at = end
  }
}

/** Reads a length of one to four bytes. `end`: where it ends. */
function readLength(bytes: Buffer, start: number): { length: number; end: number } {
  let length = 0
  for (let index = 0; index < 4; index++) {
    const byte = bytes[start + index] ?? 0
    length += (byte & 127) * 128 ** index
    if (byte < 128) return { length, end: start + index + 1 }
  }
  return { length, end: start + 4 }
}

/** Decodes only the bytes that may be shown: a flood of long topics must cost little. */
function shown(bytes: Buffer): string {
  return cut(bytes.toString('utf8', 0, 4 * shownText), shownText)
}
