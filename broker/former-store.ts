import { type EventKind, eventKinds } from '../event/kind.ts'
import type { Message } from '../event/message.ts'
import { feedbackTopic, radioTopic } from '../event/topic.ts'
import { decodeValue } from '../journal/value-codec.ts'
import type { Qos } from './connection/wire.ts'
import type { SessionRecord } from './session/session-record.ts'

/*
 * The store of the release before, which knew no journal: `queue/{clientId}/{sequence}` is a message in the queue of a
 * session, `body/{sequence}` its payload. `retained/{topic}\n{slot}` is a retained value with its payload, or with the
 * id of a shared one, `retained-body/{id}`. `session/{clientId}` is a session without a place in the journal.
 */

export const queuePrefix = 'queue/'
export const bodyPrefix = 'body/'
export const retainedPrefix = 'retained/'
export const sharedPrefix = 'retained-body/'

/** A message in the queue of a session. */
export interface QueueEntry {
  /** Names its payload. */
  sequence: number
  /** When its session began; entries of still earlier releases do not say. */
  session?: number
  topic: string
  qos: Qos
  keep: 'latest' | 'every'
  time: number
  expires?: number
  retain: boolean
  /** Set if the message was sent: its packet identifier. */
  packetId?: number
  /** QoS 2: acknowledged by PUBREC. */
  released: boolean
}

/** The fields of a retained value that are stored beside its payload. */
interface RetainedHeader {
  topic: string
  slot: string
  time: number
  expires?: number
  qos: Qos
  /** Id of the payload, where several values share one. */
  body?: string
  /** A number that rises from value to value. Values of still earlier releases have none. */
  arrival?: number
}

export type FormerRecord = Omit<SessionRecord, 'subscriptions' | 'upTo' | 'owed' | 'dropped'> & {
  subscriptions: [filter: string, qos: Qos][]
}

export function readQueueEntry(value: Buffer): QueueEntry {
  return JSON.parse(value.toString())
}

/** The message that an entry stands for. */
export function queuedMessage({ topic, qos, keep, time, expires }: QueueEntry, body: Buffer): Message {
  const { payload } = decodeValue(body)
  const until = expires === undefined ? {} : { expires }
  // The former hub wrote `every` for a retained value that a SUBSCRIBE brought, whatever its topic.
  const queue: Message['queue'] = { keep: isLatest(topic) ? 'latest' : keep, time, ...until }
  return { ...streamOf(topic), topic, payload, qos, queue }
}

/** A retained value of the release before; undefined if it is one of this release. */
export function readRetained(value: Buffer): { header: RetainedHeader; payload: Buffer } | undefined {
  return value[0] === openBrace ? decodeValue<RetainedHeader>(value) : undefined
}

/** The message that made a retained value. */
export function retainedMessage(header: RetainedHeader, payload: Buffer): Message {
  const { topic, slot, time, expires, qos } = header
  const until = expires === undefined ? {} : { expires }
  const queue: Message['queue'] = isLatest(topic)
    ? { keep: 'latest', time }
    : { keep: 'every', time, ...until }
  return { ...streamOf(topic), topic, payload, qos, retained: { slot, time, ...until }, queue }
}

/** A session of the release before; undefined if it is one of this release. */
export function readFormerRecord(value: Buffer): FormerRecord | undefined {
  const { claimedAt = 0, grantedAt: _unused, ...record } = JSON.parse(value.toString())
  // Records of still earlier releases were of persistent sessions only.
  return record.upTo === undefined ? { clean: false, version: claimedAt, ...record } : undefined
}

/** The stream of a message. Former messages did not name it; it follows from the topic. */
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
