import type { Message } from '../../event/message.ts'
import type { Qos } from '../connection/wire.ts'

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
  /** Sent and acknowledged by PUBREC: the PUBREL is under way. */
  released: boolean
}

/** The entry a message makes in the queue of a session. */
export function queueEntry(
  session: { createdAt: number },
  message: Message,
  sequence: number,
  qos: Qos,
  retain: boolean,
): QueueEntry {
  return {
    sequence,
    session: session.createdAt,
    topic: message.topic,
    qos,
    keep: message.queue.keep,
    time: message.queue.time ?? 0,
    expires: message.queue.expires,
    retain,
    packetId: undefined,
    released: false,
  }
}
