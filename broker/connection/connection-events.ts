import type { Collected, Held } from '../../listener/half-received.ts'
import type { FiltersFrame, PublishFrame } from './frames.ts'

export interface ConnectionLimits {
  /** Largest packet after log-in, bytes. */
  maxPacketBytes: number
  /** Largest packet before log-in, bytes. */
  maxConnectBytes: number
  /** Longest client identifier, bytes. */
  maxClientIdBytes: number
  /** Bytes waiting for one subscriber before it is cut off. */
  outgoingBuffer: number
  /** Filters of one session, and of one packet. */
  maxSubscriptions: number
}

/** What a connection reports to the broker, and asks of it. */
export interface ConnectionEvents {
  /** Begins to collect an unfinished packet; `end` is called when there is no room for it any more. */
  collect(isBeforeLogIn: boolean, end: () => void): Collected
  /** Counts the bytes of a packet that waits; `end` is called when there is no room for it any more. */
  hold(end: () => void): Held
  /** PUBACK, PUBREC or PUBCOMP of a message that this broker delivered. */
  acknowledged(type: number, packetId: number): void
  /** A PUBLISH. The connection hands it to Aedes next, and Aedes asks for the decision. */
  publish(publish: ArrivedPublish): void
  /** Answers a SUBSCRIBE. Resolves when that is done. Never rejects. */
  subscribe(request: FiltersFrame): Promise<void>
  /** Answers an UNSUBSCRIBE. Resolves when that is done. Never rejects. */
  unsubscribe(request: FiltersFrame): Promise<void>
  /** The hub closes the connection; `reason` is a stable word for counters. */
  cut(reason: CutReason, detail: string): void
  /** A QoS 0 message was left out, because the outgoing buffer is full. */
  dropped(): void
  /** Whether the client may publish anything at all. */
  publishes(): boolean
  /** A PUBLISH of so many bytes came in. True: it may go on. False: `resume` is called when it may. */
  publishing(bytes: number, resume: Resume): boolean
  /** As `publishing`, for a SUBSCRIBE or UNSUBSCRIBE with so many filters. */
  requesting(filters: number, resume: Resume): boolean
}

/** Lets a waiting packet go on. Returns whether the connection is still open. */
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
 * A PUBLISH of the client. `started` is when its last byte came in, or when its wait for the publish rate ended, on the
 * clock of `performance.now()`.
 */
export interface ArrivedPublish extends PublishFrame {
  started: number
}
