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

/** What a connection tells the broker around it. */
export interface ConnectionEvents {
  /** Begins to collect an unfinished packet; `end` is called when there is no room for it any more. */
  collect(isBeforeLogIn: boolean, end: () => void): Collected
  /** A place for the bytes of a packet that waits; `end` is called when there is no room for it any more. */
  hold(end: () => void): Held
  /** PUBACK, PUBREC or PUBCOMP of a message that this broker delivered. */
  acknowledged(type: number, packetId: number): void
  /** A PUBLISH. The connection hands it to Aedes next, and Aedes asks for the decision. */
  publish(publish: ArrivedPublish): void
  /** Never rejects; resolves when it is answered. */
  subscribe(request: FiltersFrame): Promise<void>
  /** Never rejects; resolves when it is answered. */
  unsubscribe(request: FiltersFrame): Promise<void>
  /** The hub closes the connection; `reason` is a stable word for counters. */
  cut(reason: CutReason, detail: string): void
  /** A QoS 0 message found no room. */
  dropped(): void
  /** Whether the client may publish anything at all. */
  publishes(): boolean
  /** A PUBLISH of so many bytes came in. True: it may go on. False: `resume` is called when it may. */
  publishing(bytes: number, resume: Resume): boolean
  /** The same for a SUBSCRIBE or UNSUBSCRIBE with so many filters. */
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
 * A PUBLISH of the client and when its last byte came in, on the clock of `performance.now()`. One that waited for the
 * publish rate counts from the end of that wait.
 */
export interface ArrivedPublish extends PublishFrame {
  started: number
}
