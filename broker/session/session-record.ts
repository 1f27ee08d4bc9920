import type { Principal } from '../../acl/principal.ts'
import { storeKeys } from '../../store/keys.ts'
import type { Nodes } from '../../store/nodes/nodes.ts'
import type { Sequences } from '../../store/nodes/sequences.ts'
import type { Change, Store } from '../../store/store.ts'
import type { Qos } from '../connection/protocol.ts'
import type { Reading } from '../fanout/reading.ts'
import type { HubTime } from '../hub-time.ts'
import type { CleanSession, CleanSessions } from './clean-sessions.ts'
import type { Owed } from './in-flight.ts'
import { outgoingPrefix } from './outgoing-qos2.ts'
import type { Session, SessionBounds } from './session.ts'

export const recordPrefix = storeKeys.session.prefix

/** A persistent session. */
export interface SessionRecord extends StoredPlace {
  clientId: string
  clean: false
  permission: string
  principal: Principal
  createdAt: number
  version: number
  /** The node that the client is connected to. A node gets a new id at each start. Absent: the client is offline. */
  node?: string
  disconnectedAt?: number
  offlineAt?: number
  /** Each filter applies to messages after its position `since`. */
  subscriptions: [filter: string, qos: Qos, since: number][]
  dropped: number
}

/** How far a persistent session has got in the journal. */
export interface StoredPlace {
  /** The session still has to get the messages after this position. */
  upTo: number
  /** Earlier messages and retained values that the client has not acknowledged. */
  owed: StoredOwed[]
  /** Number of owed messages above `maxOwed`. A crash would lose these messages. */
  lost?: number
  /** After a crash, the hub repeats the messages up to this position. */
  replay?: number
}

type StoredOwed = [position: number, qos: Qos, flags: number]

function toStored({ position, qos, retain, dup }: Owed): StoredOwed {
  return [position, qos, (retain ? 1 : 0) + (dup ? 2 : 0)]
}

export function fromStored([position, qos, flags]: StoredOwed): Owed {
  return { position, qos, retain: (flags & 1) !== 0, dup: (flags & 2) !== 0 }
}

/**
 * Returns the changes that store the record of a persistent session. In a shared store, the stored version must be
 * `storedVersion` (undefined: no record). Otherwise a stale node could overwrite a later record, or revive an ended session.
 */
export function recordChanges(
  record: SessionRecord,
  storedVersion: number | undefined,
  isShared: boolean,
): Change[] {
  const put = recordKey(record.clientId)
  const value = JSON.stringify(record)
  if (!isShared) return [{ put, value }]
  const change = { put, value, order: { time: record.version, horizon: Infinity } }
  if (storedVersion === undefined) return [{ ...change, when: 'absent' }]
  return [
    { check: put, when: 'present' },
    { ...change, when: { notNewerThan: storedVersion } },
  ]
}

/** Returns the change that removes a record. A shared store refuses to remove a later record. */
function recordRemoval(clientId: string, storedVersion: number, isShared: boolean): Change {
  const del = recordKey(clientId)
  return isShared ? { del, when: { notNewerThan: storedVersion } } : { del }
}

export function readRecord(value: Buffer): SessionRecord {
  return JSON.parse(value.toString())
}

export function recordKey(clientId: string): string {
  return `${recordPrefix}${encodeURIComponent(clientId)}`
}

/** Returns the client id in a key of a session. */
export function clientIdOf(key: string): string {
  return decodeURIComponent(key.split('/')[1] ?? '')
}

/**
 * Prefix of the received QoS 2 packet identifiers of a client. Each value is `createdAt` of the session, because a later
 * session ignores the entry, and the digest of the message, which earlier releases did not store.
 */
export function incomingPrefix(clientId: string): string {
  return `${storeKeys.incoming.prefix}${encodeURIComponent(clientId)}/`
}

/** Returns the change that stores a received QoS 2 packet identifier, until PUBREL [MQTT-4.3.3-2]. */
export function incomingChange({ clientId, createdAt }: Session, packetId: number, digest: string): Change {
  return { put: incomingPrefix(clientId) + packetId, value: `${createdAt} ${digest}` }
}

type Version = Pick<SessionRecord, 'version'>

export type Records = ReturnType<typeof createRecords>

/** Makes the records of sessions, and the changes that store or remove records. */
export function createRecords(parts: {
  store: Store
  reading: Pick<Reading, 'placeOf'>
  nodes: Nodes
  sequences: Sequences
  hubTime: HubTime
  bounds: Pick<SessionBounds, 'maxOwed'>
  clean: CleanSessions
}) {
  const { store, reading, nodes, sequences, hubTime, clean } = parts
  const { maxOwed } = parts.bounds
  return {
    recordOf,
    placeOf,
    /** Whether the store refuses changes of a node that knows an older record. */
    areChecked: nodes.isShared,

    /** Whether a record says that its client is connected to this node. */
    isOwn: (record: { node?: string | undefined } | undefined): boolean => record?.node === nodes.self,

    async read(clientId: string): Promise<SessionRecord | undefined> {
      const stored = await store.get(recordKey(clientId))
      return stored && readRecord(stored)
    },

    /** Gives the session its next version. Returns the changes that store the session. */
    changesOf(session: Session): Change[] {
      session.version = versionAfter(session.storedVersion)
      if (session.clean) return clean.changesOf(session, session.storedVersion)
      return recordChanges(recordOf(session), session.storedVersion, nodes.isShared)
    },

    /**
     * For a log-in: gives the session its first version. Returns the changes that replace the session of its client, if
     * there is one: a persistent one (`before`), or a clean one.
     */
    claimOf(session: Session, before: Version | undefined, replaced: CleanSession | undefined): Change[] {
      const { clientId } = session
      session.version = versionAfter(Math.max(before?.version ?? 0, replaced?.version ?? 0))
      const told = replaced ? clean.tellReplaced(clientId, { ...replaced, version: session.version }) : []
      if (session.clean)
        return [...removalOf(clientId, before), ...clean.changesOf(session, replaced?.version), ...told]
      const changes = recordChanges(recordOf(session), before?.version, nodes.isShared)
      return [...changes, ...clean.removalOf(clientId, replaced?.version), ...told]
    },

    replacement: (record: SessionRecord, storedVersion: number): Change[] =>
      recordChanges(record, storedVersion, nodes.isShared),

    /** Returns the next record of a session whose client is now offline. */
    offline({ node: _given, ...record }: SessionRecord): SessionRecord {
      return { ...record, version: versionAfter(record.version), ...hubTime.gone() }
    },

    removalOf,

    /** Returns the changes that remove the QoS 2 entries of a session. */
    async leftovers(clientId: string): Promise<Change[]> {
      const changes: Change[] = []
      for (const prefix of [incomingPrefix(clientId), outgoingPrefix(clientId)]) {
        for await (const [key] of store.range(prefix)) changes.push({ del: key })
      }
      return changes
    },
  }

  /**
   * Returns a version above `before`, even if the clocks of nodes disagree. Progress that this node stores later gets a
   * higher version still.
   */
  function versionAfter(before = 0): number {
    sequences.heard(before)
    return sequences.next()
  }

  /** Returns the changes that remove a persistent session. Undefined: in a shared store, there must be none. */
  function removalOf(clientId: string, before: Version | undefined): Change[] {
    if (before) return [recordRemoval(clientId, before.version, nodes.isShared)]
    return nodes.isShared ? [{ check: recordKey(clientId), when: 'absent' }] : []
  }

  /** Returns how far a session has got, with at most `maxOwed` owed messages. */
  function placeOf(session: Session): StoredPlace {
    // No limit if QoS 2 messages were sent: the session must not find a sent message in the journal again.
    const { upTo, owed, lost } = reading.placeOf(session, session.hasSentQos2 ? Infinity : maxOwed)
    return {
      upTo,
      owed: owed.map(toStored),
      ...(lost > 0 && { lost }),
      ...(session.replay && { replay: session.replay.upTo }),
    }
  }

  function recordOf(session: Session): SessionRecord {
    const { clientId, permission, principal, createdAt, version, dropped } = session
    const { disconnectedAt, offlineAt } = session
    return {
      clientId,
      clean: false,
      permission,
      principal,
      createdAt,
      version,
      dropped,
      ...(offlineAt === undefined && { node: nodes.self }),
      ...(disconnectedAt !== undefined && { disconnectedAt }),
      ...(offlineAt !== undefined && { offlineAt }),
      subscriptions: filtersOf(session),
      ...placeOf(session),
    }
  }
}

function filtersOf({ subscriptions }: Session): SessionRecord['subscriptions'] {
  const granted = [...subscriptions].filter(([, { isEnding }]) => !isEnding)
  return granted.map(([filter, { qos, since }]) => [filter, qos, since])
}
