import { encodeLength, type Frame, readBytes, readText } from './frames.ts'
import { connackCode, packetType, type Qos } from './protocol.ts'

/** The fields of a CONNECT that this broker itself uses. */
export interface ConnectPacket {
  clientId: string
  clean: boolean
  /** A mosquitto bridge: bit 7 of the protocol level is set. See docs/bridges.md. */
  isBridge: boolean
  /** Seconds; 0: no keep alive. */
  keepAlive: number
  /** Offset of the keep alive in the body of the frame, bytes. */
  keepAliveAt: number
  will: Will | undefined
  /** Offsets of the will (topic and message) in the body of the frame, bytes. `to` is excluded. */
  willAt: { from: number; to: number } | undefined
}

/** The message that the broker publishes if the connection ends without DISCONNECT (MQTT 3.1.1 §3.1.2.5). */
export interface Will {
  topic: string
  payload: Buffer
  qos: Qos
  retain: boolean
}

/** Why the hub refuses the first packet of a connection. Without `returnCode` the client gets no CONNACK. */
export interface Refusal {
  reason: 'protocol' | 'version'
  detail: string
  returnCode?: number
}

/** Offset of the protocol level in the body of a CONNECT, behind the protocol name `MQTT`. */
const levelAt = 6
const level311 = 4
/** Mosquitto sets this bit of the protocol level in the CONNECT of a bridge. */
const bridgeBit = 0x80

/**
 * Encodes the CONNECT for Aedes without keep alive: Aedes does not see all signs of life [MQTT-3.1.2-24]. A placeholder
 * replaces the will, or Aedes would keep a second copy of the payload. The protocol level is without the bridge bit.
 */
export function encodeForAedes(
  { type, body }: Frame,
  { keepAliveAt, willAt }: Pick<ConnectPacket, 'keepAliveAt' | 'willAt'>,
): Buffer {
  const head = Buffer.from(body.subarray(0, willAt?.from))
  head.writeUInt8(level311, levelAt)
  head.writeUInt16BE(0, keepAliveAt)
  const parts = willAt ? [head, someWill, body.subarray(willAt.to)] : [head]
  const content = Buffer.concat(parts)
  return Buffer.concat([Buffer.of(type << 4), encodeLength(content.length), content])
}

/** The placeholder for a will: the topic `x` and an empty message. */
const someWill = Buffer.of(0, 1, 0x78, 0, 0)

/** Reads the first packet of a connection, which must be a valid CONNECT. */
export function judgeConnect(frame: Frame, maxClientId: number): ConnectPacket | { refusal: Refusal } {
  if (frame.type !== packetType.connect) return refused('protocol', 'first packet is not CONNECT') // [MQTT-3.1.0-1]
  const request = readConnect(frame)
  if ('violation' in request) return refused('protocol', request.violation)
  if ('refuse' in request) {
    if (request.refuse === connackCode.unacceptableVersion)
      return refused('version', 'not MQTT 3.1.1', request.refuse)
    return refused('protocol', 'empty client id without clean session', request.refuse)
  }
  const bytes = Buffer.byteLength(request.clientId)
  if (bytes <= maxClientId) return request
  return refused(
    'protocol',
    `client id of ${bytes} bytes, at most ${maxClientId} allowed`,
    connackCode.identifierRejected,
  ) // [MQTT-3.1.3-9]
}

function refused(reason: Refusal['reason'], detail: string, returnCode?: number): { refusal: Refusal } {
  return { refusal: { reason, detail, ...(returnCode !== undefined && { returnCode }) } }
}

/**
 * Reads and checks a CONNECT (MQTT 3.1.1 §3.1). `refuse`: the return code of the CONNACK. `violation`: there must be no
 * CONNACK.
 */
function readConnect(frame: Frame): ConnectPacket | { refuse: number } | { violation: string } {
  const { body } = frame
  const name = readText(body, 0)
  if ('problem' in name) return { violation: `protocol name: ${name.problem}` }
  const level = body[name.end]
  if (level === undefined) return { violation: 'packet is truncated' }
  const protocol = name.bytes.toString()
  // Another MQTT version gets return code 1 [MQTT-3.1.2-2], another protocol gets no CONNACK [MQTT-3.1.2-1].
  const isBridge = level === (level311 | bridgeBit)
  if (protocol === 'MQIsdp' || (protocol === 'MQTT' && level !== level311 && !isBridge))
    return { refuse: connackCode.unacceptableVersion }
  if (protocol !== 'MQTT') return { violation: 'protocol name is not MQTT' }

  const flags = body[name.end + 1]
  const keepAliveAt = name.end + 2
  if (flags === undefined || body.length < keepAliveAt + 2) return { violation: 'packet is truncated' }
  const flagProblem = checkFlags(flags)
  if (flagProblem) return { violation: flagProblem }

  const clientId = readText(body, keepAliveAt + 2)
  if ('problem' in clientId) return { violation: `client id: ${clientId.problem}` }
  const fields = readFields(body, clientId.end, flags)
  if ('problem' in fields) return { violation: fields.problem }

  const clean = (flags & connectFlag.cleanSession) !== 0
  if (clientId.bytes.length === 0 && !clean) return { refuse: connackCode.identifierRejected } // [MQTT-3.1.3-8]
  return {
    clientId: clientId.bytes.toString(),
    clean,
    isBridge,
    keepAlive: body.readUInt16BE(keepAliveAt),
    keepAliveAt,
    will: fields.will,
    willAt: fields.willAt,
  }
}

const connectFlag = { reserved: 1, cleanSession: 2, will: 4, willRetain: 32, password: 64, username: 128 }

function checkFlags(flags: number): string | undefined {
  const has = (flag: number) => (flags & flag) !== 0
  const willQos = (flags >> 3) & 3
  if (has(connectFlag.reserved)) return 'reserved connect flag is set' // [MQTT-3.1.2-3]
  if (!has(connectFlag.will) && (willQos !== 0 || has(connectFlag.willRetain)))
    return 'will flags without a will' // [MQTT-3.1.2-13], [MQTT-3.1.2-15]
  if (willQos === 3) return 'will QoS 3 does not exist' // [MQTT-3.1.2-14]
  if (has(connectFlag.password) && !has(connectFlag.username)) return 'password without user name' // [MQTT-3.1.2-22]
  return undefined
}

/** Reads the fields after the client id. The last field must end where the packet ends [MQTT-3.1.3-1]. */
function readFields(
  body: Buffer,
  start: number,
  flags: number,
): Pick<ConnectPacket, 'will' | 'willAt'> | { problem: string } {
  let at = start
  let will: Will | undefined
  let willAt: ConnectPacket['willAt']
  if (flags & connectFlag.will) {
    const topic = readText(body, at)
    if ('problem' in topic) return { problem: `will topic: ${topic.problem}` }
    if (topic.bytes.length === 0) return { problem: 'will topic is empty' }
    if (topic.bytes.includes('+') || topic.bytes.includes('#'))
      return { problem: 'will topic has a wildcard' }
    const message = readBytes(body, topic.end)
    if ('problem' in message) return { problem: `will message: ${message.problem}` }
    const qos = (flags >> 3) & 3
    will = {
      topic: topic.bytes.toString(),
      payload: Buffer.from(message.bytes),
      qos: qos === 2 ? 2 : qos === 1 ? 1 : 0,
      retain: (flags & connectFlag.willRetain) !== 0,
    }
    willAt = { from: start, to: message.end }
    at = message.end
  }
  if (flags & connectFlag.username) {
    const username = readText(body, at)
    if ('problem' in username) return { problem: `user name: ${username.problem}` }
    at = username.end
  }
  if (flags & connectFlag.password) {
    const password = readBytes(body, at)
    if ('problem' in password) return { problem: `password: ${password.problem}` }
    at = password.end
  }
  return at === body.length ? { will, willAt } : { problem: 'bytes behind the last field' }
}
