import type { Message } from '../../event/message.ts'
import { padded } from '../../store/nodes/sequences.ts'
import type { Change, Store } from '../../store/store.ts'
import { type Publish, preparePublish } from '../connection/wire.ts'
import type { Session } from '../session/session.ts'
import type { QueueEntry } from './queue-entry.ts'
import { decodeRecord, encodeRecord } from './record.ts'

/*
 * How the queues of persistent sessions lie in the store: `queue/{clientId}/{sequence}` holds an entry,
 * `body/{sequence}` the payload that the entries of one message share.
 */

/** Stored queues by client id, oldest entry first, by sequence: all of them, or that of one client. */
export async function readQueues(
  store: Store,
  clientId?: string,
): Promise<Map<string, Map<number, QueueEntry>>> {
  const queues = new Map<string, Map<number, QueueEntry>>()
  const below = clientId === undefined ? '' : `${encodeURIComponent(clientId)}/`
  for await (const [key, value] of store.range(`queue/${below}`)) {
    const { clientId } = placeOfEntry(key)
    const entry = readEntry(value)
    const entries = queues.get(clientId)
    if (entries) entries.set(entry.sequence, entry)
    else queues.set(clientId, new Map([[entry.sequence, entry]]))
  }
  return queues
}

/** The message an entry refers to, or undefined when it is not stored. */
export async function readBody(store: Store, entry: QueueEntry): Promise<Publish | undefined> {
  const value = await store.get(bodyKey(entry.sequence))
  return value && preparePublish(entry.topic, decodeRecord(value).payload)
}

/** Stores the payload that the entries of this sequence refer to. */
export function bodyChange(sequence: number, message: Message): Change {
  return { put: bodyKey(sequence), value: encodeRecord({ topic: message.topic }, message.payload) }
}

/** Stores an entry as it is now. */
export function entryChange(session: Session, entry: QueueEntry): Change {
  return {
    put: queueKey(session.clientId, entry.sequence),
    value: JSON.stringify(entry),
  }
}

export function readEntry(value: Buffer): QueueEntry {
  return JSON.parse(value.toString())
}

export function placeOfEntry(key: string): { clientId: string; sequence: number } {
  const [, clientId = '', sequence] = key.split('/')
  return { clientId: decodeURIComponent(clientId), sequence: Number(sequence) }
}

/** The message in a stored body. */
export function readBodyOf(value: Buffer): Publish {
  const { header, payload } = decodeRecord<{ topic: string }>(value)
  return preparePublish(header.topic, payload)
}

export function queueKey(clientId: string, sequence: number): string {
  return `queue/${encodeURIComponent(clientId)}/${padded(sequence)}`
}

export function bodyKey(sequence: number): string {
  return `body/${padded(sequence)}`
}
