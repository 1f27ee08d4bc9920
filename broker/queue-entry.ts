import type { Qos } from './wire.ts'

/** One message in the queue of a persistent session. The payload is stored once, under `sequence`. */
export interface QueueEntry {
  readonly sequence: number
  /** `createdAt` of its session; entries of earlier releases do not say. */
  readonly session: number | undefined
  readonly topic: string
  readonly qos: Qos
  readonly keep: 'latest' | 'every'
  readonly time: number
  readonly expires: number | undefined
  /** Retain flag: set only for a retained message sent because of a new subscription. */
  readonly retain: boolean
  packetId: number | undefined
  /** False while its commit is under way: until then there is nothing to send. */
  stored: boolean
  /** Sent and acknowledged by PUBREC: the PUBREL is under way. */
  released: boolean
}
