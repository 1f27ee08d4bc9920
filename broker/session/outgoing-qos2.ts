import { decodeValue, type Entry, encodeValue } from '../../journal/entry.ts'
import { digitsOf } from '../../store/commit.ts'
import { storeKeys } from '../../store/keys.ts'
import type { Change, Store } from '../../store/store.ts'
import type { Owed } from './in-flight.ts'
import type { Session } from './session.ts'

export type Outgoing = ReturnType<typeof createOutgoing>

/** What the node needs to repeat a message that the journal no longer keeps. */
type Sent = Pick<Entry, 'topic' | 'payload' | 'queue'>

interface StoredInFlight {
  topic: string
  queue: Entry['queue']
  retain: boolean
  /** When the session began. A later session with the same client id does not get the message. */
  session: number
}

/**
 * Stores QoS 2 messages to persistent sessions: each message before PUBLISH, and its release before PUBREL
 * [MQTT-4.3.3-1]. One commit removes a finished message and stores the progress: a crash between two commits would send
 * the message anew. The hub publishes at QoS 1: only tests have such messages.
 */
export function createOutgoing(store: Store) {
  /** Changes that remove finished messages, by client id. The next commit of progress contains them. */
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
      const stored: StoredInFlight = { topic, queue, retain, session: createdAt }
      await store.commit([{ put: keyOf(clientId, position), value: encodeValue(stored, payload) }])
    },

    /** Reads a stored message. */
    async get({ clientId }: Session, position: number): Promise<Sent | undefined> {
      const value = await store.get(keyOf(clientId, position))
      if (!value) return undefined
      const { header, payload } = decodeValue<StoredInFlight>(value)
      return { topic: header.topic, queue: header.queue, payload }
    },

    /** Stores that the client has confirmed a message by PUBREC. */
    async release({ clientId }: Session, position: number): Promise<void> {
      await store.commit([{ put: keyOf(clientId, position) + releasedMark, value: '' }])
    },

    /** Removes a message that the client has confirmed by PUBCOMP, or no longer gets. `commitRemovals` stores that. */
    remove({ clientId }: Session, position: number): void {
      const key = keyOf(clientId, position)
      removals.set(clientId, [...(removals.get(clientId) ?? []), { del: key }, { del: key + releasedMark }])
    },

    /** Stores the removals of these sessions. `commit` commits them with the places of the sessions. */
    async commitRemovals(
      isOf: (clientId: string) => boolean,
      commit: (changes: readonly Change[]) => Promise<unknown>,
    ): Promise<void> {
      const taken = new Map([...removals].filter(([clientId]) => isOf(clientId)))
      for (const clientId of taken.keys()) removals.delete(clientId)
      try {
        await commit([...taken.values()].flat())
      } catch (error) {
        for (const [clientId, changes] of taken)
          removals.set(clientId, [...changes, ...(removals.get(clientId) ?? [])])
        throw error
      }
    },

    /** Reads the messages that were sent in a session and have no PUBCOMP yet. */
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
        const { retain, session } = decodeValue<StoredInFlight>(value).header
        if (session === createdAt) found.set(position, { position, qos: 2, retain, dup: true, stored: true })
      }
      return [...found.values()]
    },
  }
}

export function outgoingPrefix(clientId: string): string {
  return `${storeKeys.outgoing.prefix}${encodeURIComponent(clientId)}/`
}

function keyOf(clientId: string, position: number): string {
  return outgoingPrefix(clientId) + digitsOf(position)
}

/** A key with this suffix says that the message is released. */
const releasedMark = '/released'
