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

/**
 * Reserved flags of the packet types that clients send (MQTT 3.1.1 §2.2.2) [MQTT-2.2.2-1]. `own`: the flags have
 * meanings (DUP, QoS, RETAIN).
 */
export const reservedFlags: Record<number, number | 'own'> = {
  [packetType.connect]: 0,
  [packetType.publish]: 'own',
  [packetType.puback]: 0,
  [packetType.pubrec]: 0,
  [packetType.pubrel]: 2,
  [packetType.pubcomp]: 0,
  [packetType.subscribe]: 2,
  [packetType.unsubscribe]: 2,
  [packetType.pingreq]: 0,
  [packetType.disconnect]: 0,
}

/** The connect flags (MQTT 3.1.1 §3.1.2.3). Two more bits are the QoS of the will. */
export const connectFlag = {
  reserved: 1,
  cleanSession: 2,
  will: 4,
  willRetain: 32,
  password: 64,
  username: 128,
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

/** The client has sent a packet that MQTT or a limit forbids. The hub must close the connection. */
export class ProtocolViolation extends Error {
  /** The packet came in too many tiny pieces: the hub must not read on. */
  readonly isCostly: boolean

  constructor(message: string, isCostly = false) {
    super(message)
    this.isCostly = isCostly
  }
}
