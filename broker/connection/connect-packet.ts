import { ownBytes } from '../../store/own-bytes.ts'
import { encodeLength, type Frame, readBytes, readText } from './frames.ts'
import { connackCode, connectFlag, packetType, type Qos } from './protocol.ts'

/** The fields of a CONNECT that this broker itself uses. */
export interface ConnectPacket {
  clientId: string
  clean: boolean
  /** A mosquitto bridge: bit 7 of the protocol level is set. See docs/bridges.md. */
  isBridge: boolean
  /** Seconds; 0: no keep alive. */
  keepAlive: number
  will: Will | undefined
}

/** The user name and password of a CONNECT. */
export interface ConnectCredentials {
  username: string | undefined
  password: Buffer | undefined
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

const level311 = 4
/** Mosquitto sets this bit of the protocol level in the CONNECT of a bridge. */
const bridgeBit = 0x80

/**
 * Encodes the CONNECT for Aedes, whose parser keeps all of it as long as the connection lasts: without user name and
 * password, with a will of one letter, without keep alive, because Aedes does not see all signs of life [MQTT-3.1.2-24], and
 * without the bridge bit.
 */
export function encodeForAedes({ clientId, clean, will }: ConnectPacket): Buffer {
  const id = Buffer.from(clientId)
  const flags = (clean ? connectFlag.cleanSession : 0) | (will ? connectFlag.will : 0)
  const head = Buffer.of(0, 4, ...Buffer.from('MQTT'), level311, flags, 0, 0, id.length >> 8, id.length & 255)
  const content = Buffer.concat([head, id, ...(will ? [someWill] : [])])
  return Buffer.concat([Buffer.of(packetType.connect << 4), encodeLength(content.length), content])
}

/** The placeholder for a will: the topic `x` and an empty message. */
const someWill = Buffer.of(0, 1, 0x78, 0, 0)

/** Reads the first packet of a connection, which must be a valid CONNECT. */
export function judgeConnect(
  frame: Frame,
  maxClientId: number,
): { request: ConnectPacket; credentials: ConnectCredentials } | { refusal: Refusal } {
  if (frame.type !== packetType.connect) return refused('protocol', 'first packet is not CONNECT') // [MQTT-3.1.0-1]
  const read = readConnect(frame)
  if ('violation' in read) return refused('protocol', read.violation)
  if ('refuse' in read) {
    if (read.refuse === connackCode.unacceptableVersion)
      return refused('version', 'not MQTT 3.1.1', read.refuse)
    return refused('protocol', 'empty client id without clean session', read.refuse)
  }
  const bytes = Buffer.byteLength(read.request.clientId)
  if (bytes <= maxClientId) return read
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
function readConnect(
  frame: Frame,
): { request: ConnectPacket; credentials: ConnectCredentials } | { refuse: number } | { violation: string } {
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
  const { will, username, password } = fields
  const keepAlive = body.readUInt16BE(keepAliveAt)
  const request = { clientId: clientId.bytes.toString(), clean, isBridge, keepAlive, will }
  return { request, credentials: { username, password } }
}

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
): (Pick<ConnectPacket, 'will'> & ConnectCredentials) | { problem: string } {
  let at = start
  let will: Will | undefined
  let username: string | undefined
  let password: Buffer | undefined
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
      payload: ownBytes(message.bytes),
      qos: qos === 2 ? 2 : qos === 1 ? 1 : 0,
      retain: (flags & connectFlag.willRetain) !== 0,
    }
    at = message.end
  }
  if (flags & connectFlag.username) {
    const name = readText(body, at)
    if ('problem' in name) return { problem: `user name: ${name.problem}` }
    username = name.bytes.toString()
    at = name.end
  }
  if (flags & connectFlag.password) {
    const secret = readBytes(body, at)
    if ('problem' in secret) return { problem: `password: ${secret.problem}` }
    password = Buffer.from(secret.bytes)
    at = secret.end
  }
  return at === body.length ? { will, username, password } : { problem: 'bytes behind the last field' }
}
