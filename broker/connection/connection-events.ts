import type { Collected, Held } from '../../listener/half-received.ts'
import type { CutReason } from '../../telemetry/metrics.ts'
import type { Frame, PublishFrame } from './frames.ts'
import type { FiltersFrame } from './packets.ts'

export interface ConnectionLimits {
  /** Largest packet after log-in, bytes. */
  maxPacket: number
  /** Largest packet before log-in, bytes. */
  maxConnectPacket: number
  /** Longest client identifier, bytes. */
  maxClientId: number
  /** Size of one client's outgoing buffer, bytes. A full buffer drops QoS 0 messages, or cuts the client off. */
  outgoingBuffer: number
  /** Maximum number of topic filters of one session, and of one SUBSCRIBE or UNSUBSCRIBE packet. */
  maxSubscriptions: number
}

/** What a connection tells or asks the broker. */
export interface ConnectionEvents {
  /** The first packet is there, not judged yet. */
  connecting(frame: Frame): void
  /** Begins to collect an unfinished packet. The broker calls `end` if the packet must make room. */
  collect(isBeforeLogIn: boolean, end: () => void): Collected
  /** Counts the bytes of a waiting packet. The broker calls `end` if the packet must make room. */
  countBytes(end: () => void): Held
  /** The client has sent PUBACK, PUBREC or PUBCOMP for a delivery. */
  deliveryAcknowledged(type: number, packetId: number): void
  /** Decides about a PUBLISH, and answers it in the order of arrival. */
  publish(publish: ArrivedPublish): void
  /** Releases a packet identifier on PUBREL, answers, and then resolves. Never rejects. */
  release(packetId: number): Promise<void>
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
  /** False: a PUBLISH with this many bytes must wait until the broker calls `resume`. */
  publishing(bytes: number, resume: Resume): boolean
  /** False: a packet with this many filters must wait until the broker calls `resume`. */
  requesting(filters: number, resume: Resume): boolean
}

/** Lets a waiting packet go on. `waitedFor`: its last reason to wait. Returns whether the connection is still open. */
export type Resume = (waitedFor: 'pacing' | 'rate') => boolean

/**
 * A PUBLISH that the client has sent. `started`: when its last byte arrived, or when its wait for the publish rate
 * ended (`performance.now()`). `finished`: the broker holds it no longer, so the hub may read on.
 */
export interface ArrivedPublish extends PublishFrame {
  started: number
  finished: () => void
}
