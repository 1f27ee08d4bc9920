import { type Entry, padded } from '../../journal/entry.ts'
import { decodeValue, encodeValue } from '../../journal/value-codec.ts'
import type { Change, Store } from '../../store/store.ts'
import type { Owed } from './in-flight.ts'
import type { Session } from './session.ts'

export type Outgoing = ReturnType<typeof createOutgoing>

/** The changes that remove finished messages. Call `putBack` if they could not be stored. */
export interface Finished {
  changes: readonly Change[]
  putBack(): void
}

/** The parts of a message that are needed to send it again when the journal no longer keeps it. */
type Sent = Pick<Entry, 'topic' | 'payload' | 'queue'>

interface Stored {
  topic: string
  queue: Entry['queue']
  retain: boolean
  /** When its session began: another session of that client id does not get it. */
  session: number
}

/**
 * QoS 2 messages that were sent to persistent sessions: stored before they are sent, and again before they are released
 * [MQTT-4.3.3-1]. A finished message is removed in the commit that stores that the session is no longer owed it. So a
 * message that is still owed is always there.
 * The hub publishes at QoS 1: only the broker on its own has such messages.
 */
export function createOutgoing(store: Store) {
  /** Changes that remove finished messages, by client id. They wait here for the next commit of progress. */
  const removals = new Map<string, Change[]>()

  return {
    /** Stores a message that is about to be sent. */
    async store(
      session: Session,
      { topic, queue, payload }: Sent,
      { position, retain }: Owed,
    ): Promise<void> {
      const { clientId, createdAt } = session
      session.hasSentQos2 = true
      const stored: Stored = { topic, queue, retain, session: createdAt }
      await store.commit([{ put: keyOf(clientId, position), value: encodeValue(stored, payload) }])
    },

    /** The message as it was stored. */
    async get({ clientId }: Session, position: number): Promise<Sent | undefined> {
      const value = await store.get(keyOf(clientId, position))
      if (!value) return undefined
      const { header, payload } = decodeValue<Stored>(value)
      return { topic: header.topic, queue: header.queue, payload }
    },

    /** Stores that the client has confirmed a message by PUBREC. */
    async release({ clientId }: Session, position: number): Promise<void> {
      await store.commit([{ put: keyOf(clientId, position) + releasedMark, value: '' }])
    },

    /** Notes that the client has confirmed a message by PUBCOMP, or does not get it any more. */
    finished({ clientId }: Session, position: number): void {
      const key = keyOf(clientId, position)
      removals.set(clientId, [...(removals.get(clientId) ?? []), { del: key }, { del: key + releasedMark }])
    },

    /** Takes the removals of a session, or of all. The caller commits them together with the progress of sessions. */
    takeFinished(of?: Session): Finished {
      const taken = of ? new Map([[of.clientId, removals.get(of.clientId) ?? []]]) : new Map(removals)
      for (const clientId of taken.keys()) removals.delete(clientId)
      return {
        changes: [...taken.values()].flat(),
        putBack() {
          for (const [clientId, changes] of taken)
            removals.set(clientId, [...changes, ...(removals.get(clientId) ?? [])])
        },
      }
    },

    /** The messages that were sent in a session and are not finished. */
    async read(clientId: string, createdAt: number): Promise<Owed[]> {
      const prefix = outgoingPrefix(clientId)
      const found = new Map<number, Owed>()
      for await (const [key, value] of store.range(prefix)) {
        const position = Number.parseInt(key.slice(prefix.length), 10)
        const before = found.get(position)
        if (key.endsWith(releasedMark)) {
          if (before) found.set(position, { ...before, released: true })
          continue
        }
        const { retain, session } = decodeValue<Stored>(value).header
        if (session === createdAt) found.set(position, { position, qos: 2, retain, dup: true, stored: true })
      }
      return [...found.values()]
    },
  }
}

export function outgoingPrefix(clientId: string): string {
  return `outgoing/${encodeURIComponent(clientId)}/`
}

function keyOf(clientId: string, position: number): string {
  return outgoingPrefix(clientId) + padded(position)
}

/** An entry with this mark behind the key of a message says that it is released: the message need not be rewritten. */
const releasedMark = '/released'
