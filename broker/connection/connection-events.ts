import type { Collected, Held } from '../../listener/half-received.ts'
import type { PublishFrame } from './frames.ts'
import type { FiltersFrame } from './packets.ts'

export interface ConnectionLimits {
  /** Largest packet after log-in, bytes. */
  maxPacketBytes: number
  /** Largest packet before log-in, bytes. */
  maxConnectBytes: number
  /** Longest client identifier, bytes. */
  maxClientIdBytes: number
  /** Size of one client's outgoing buffer, bytes. If it is full, the client loses QoS 0 messages or is cut off. */
  outgoingBuffer: number
  /** Maximum number of topic filters of one session, and of one SUBSCRIBE or UNSUBSCRIBE packet. */
  maxSubscriptions: number
}

/** The calls with which a connection reports events to the broker, or asks the broker for decisions. */
export interface ConnectionEvents {
  /** Begins to collect an unfinished packet. The broker calls `end` if it drops the packet for lack of room. */
  collect(isBeforeLogIn: boolean, end: () => void): Collected
  /** Counts the bytes of a waiting packet. The broker calls `end` if it drops the packet for lack of room. */
  countBytes(end: () => void): Held
  /** The client has sent PUBACK, PUBREC or PUBCOMP for a message that the broker had sent to it. */
  deliveryAcknowledged(type: number, packetId: number): void
  /** The connection is about to pass a PUBLISH to Aedes. Aedes then asks the broker for the decision. */
  publish(publish: ArrivedPublish): void
  /** Carries out a SUBSCRIBE, sends SUBACK, and then resolves. Never rejects. */
  subscribe(request: FiltersFrame): Promise<void>
  /** Carries out an UNSUBSCRIBE, sends UNSUBACK, and then resolves. Never rejects. */
  unsubscribe(request: FiltersFrame): Promise<void>
  /** The hub closes the connection. `reason` is a label in the metrics, `detail` is for the log. */
  cut(reason: CutReason, detail: string): void
  /** The connection has dropped a QoS 0 message, because the outgoing buffer is full. */
  dropped(): void
  /** Whether the client may publish anything at all. */
  publishes(): boolean
  /** Whether a PUBLISH with this many bytes may go on now. If not, the broker calls `resume` later. */
  publishing(bytes: number, resume: Resume): boolean
  /** Whether a SUBSCRIBE or UNSUBSCRIBE of this many filters may go on. If not, the broker calls `resume` later. */
  requesting(filters: number, resume: Resume): boolean
}

/** Lets a waiting packet go on. `waitedFor`: its last reason to wait. Returns whether the connection is still open. */
export type Resume = (waitedFor: 'pacing' | 'rate') => boolean

export type CutReason =
  | 'protocol'
  | 'version'
  | 'slow'
  | 'keepalive'
  | 'revoked'
  | 'takeover'
  | 'operator'
  | 'overload'
  | 'error'

/**
 * A PUBLISH that the client has sent. `started` is a time of `performance.now()`: when the last byte arrived or, if the
 * PUBLISH waited for the publish rate, when that wait ended.
 */
export interface ArrivedPublish extends PublishFrame {
  started: number
}
