import { type EventKind, eventKinds } from '../event/kind.ts'
import type { Message } from '../event/message.ts'
import { feedbackTopic, radioTopic } from '../event/topic.ts'
import { decodeValue } from '../journal/entry.ts'
import type { Qos } from './connection/protocol.ts'
import type { SessionRecord } from './session/session-record.ts'

/*
 * The store of the former release, which had no journal:
 * - `queue/{clientId}/{sequence}`: a message in the queue of a session
 * - `body/{sequence}`: the payload of this message
 * - `retained/{topic}\n{slot}`: a retained value, with its payload or the id of a shared payload
 * - `retained-body/{id}`: a shared payload
 * - `session/{clientId}`: a session without a position in the journal
 */

export const queuePrefix = 'queue/'
export const bodyPrefix = 'body/'
export const retainedPrefix = 'retained/'
export const sharedPrefix = 'retained-body/'

/** A message in the queue of a session. */
export interface QueueEntry {
  /** The number in the key of its payload. */
  sequence: number
  /** When its session began, milliseconds since the epoch. Absent in entries of still earlier releases. */
  session?: number
  topic: string
  qos: Qos
  keep: 'latest' | 'every'
  time: number
  expires?: number
  retain: boolean
  /** The packet identifier with which the message was sent. Absent: it was not sent. */
  packetId?: number
  /** QoS 2: the client has acknowledged the message by PUBREC. */
  released: boolean
}

/** The fields of a retained value that are stored beside its payload. */
interface RetainedHeader {
  topic: string
  slot: string
  time: number
  expires?: number
  qos: Qos
  /** Id of the payload, if several values share it. */
  body?: string
  /** A number that rises with each value. Absent in values of still earlier releases. */
  arrival?: number
}

export type FormerRecord = Omit<SessionRecord, 'subscriptions' | 'upTo' | 'owed' | 'dropped'> & {
  subscriptions: [filter: string, qos: Qos][]
}

export function readQueueEntry(value: Buffer): QueueEntry {
  return JSON.parse(value.toString())
}

/** Makes the message of a queue entry. */
export function queuedMessage({ topic, qos, keep, time, expires }: QueueEntry, body: Buffer): Message {
  const { payload } = decodeValue(body)
  const until = expires === undefined ? {} : { expires }
  // `keep` may be wrong: the former release set `every` for all retained values of a SUBSCRIBE.
  const queue: Message['queue'] = { keep: isLatest(topic) ? 'latest' : keep, time, ...until }
  return { ...streamOf(topic), topic, payload, qos, queue }
}

/** Reads a retained value of the former release. Undefined: the value is one of this release. */
export function readRetained(value: Buffer): { header: RetainedHeader; payload: Buffer } | undefined {
  return value[0] === openBrace ? decodeValue<RetainedHeader>(value) : undefined
}

/** Makes the message of a retained value. */
export function retainedMessage(header: RetainedHeader, payload: Buffer): Message {
  const { topic, slot, time, expires, qos } = header
  const until = expires === undefined ? {} : { expires }
  const queue: Message['queue'] = isLatest(topic)
    ? { keep: 'latest', time }
    : { keep: 'every', time, ...until }
  return { ...streamOf(topic), topic, payload, qos, retained: { slot, time, ...until }, queue }
}

/** Reads a session of the former release. Undefined: the session is one of this release. */
export function readFormerRecord(value: Buffer): FormerRecord | undefined {
  const { claimedAt = 0, grantedAt: _unused, ...record } = JSON.parse(value.toString())
  // Records of still earlier releases have no `clean`. All of them belong to persistent sessions.
  return record.upTo === undefined ? { clean: false, version: claimedAt, ...record } : undefined
}

/** The stream of a former message follows from its topic. */
function streamOf(topic: string): Pick<Message, 'stream' | 'isReport'> {
  const id = secondLevel(topic)
  if (topic === feedbackTopic(id)) return { isReport: true }
  return kindOf(topic) ? { stream: id } : {}
}

function kindOf(topic: string): EventKind | undefined {
  return eventKinds.find((kind) => topic === radioTopic(secondLevel(topic), kind))
}

function isLatest(topic: string): boolean {
  return ['track', 'data'].includes(kindOf(topic)?.class ?? '')
}

function secondLevel(topic: string): string {
  return topic.split('/')[1] ?? ''
}

const openBrace = '{'.charCodeAt(0)
