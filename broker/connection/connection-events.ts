import type { Collected } from '../../listener/half-received.ts'
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
}

/** What a connection tells the broker around it. */
export interface ConnectionEvents {
  /** Begins to collect an unfinished packet; `end` is called when there is no room for it any more. */
  collect(isBeforeLogIn: boolean, end: () => void): Collected
  /** PUBACK, PUBREC or PUBCOMP of a message that this broker delivered. */
  acknowledged(type: number, packetId: number): void
  /** A PUBLISH; those of QoS 2 are handed inwards as well, afterwards. */
  publish(publish: ArrivedPublish): void
  /** Never rejects; resolves when it is answered. */
  subscribe(request: FiltersFrame): Promise<void>
  /** Never rejects; resolves when it is answered. */
  unsubscribe(request: FiltersFrame): Promise<void>
  /** The hub closes the connection; `reason` is a stable word for counters. */
  cut(reason: CutReason, detail: string): void
  /** A QoS 0 message found no room. */
  dropped(): void
  /**
   * A PUBLISH of so many bytes came in. True: it may go on. False: there were too many, and `resume` is called when it may; until
   * then nothing is read. `resume` tells whether the connection is still open.
   */
  publishing(bytes: number, resume: () => boolean): boolean
}

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

/** A PUBLISH of the client and when its last byte came in, on the clock of `performance.now()`. */
export interface ArrivedPublish extends PublishFrame {
  started: number
}
