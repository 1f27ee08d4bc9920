import type { Principal } from '../../acl/principal.ts'
import type { Nodes } from '../../store/nodes/nodes.ts'
import type { Sequences } from '../../store/nodes/sequences.ts'
import type { Change, Store } from '../../store/store.ts'
import type { Qos } from '../connection/wire.ts'
import type { Reading } from '../fanout/reading.ts'
import type { HubTime } from '../hub-time.ts'
import type { Owed } from './in-flight.ts'
import { outgoingPrefix } from './outgoing-qos2.ts'
import type { Session, SessionBounds } from './session.ts'

/*
 * How sessions lie in the store: `session/{clientId}` is the session, `incoming/{clientId}/{packetId}` a received QoS 2
 * packet identifier of it, `outgoing/{clientId}/{position}` a QoS 2 message that was sent.
 */

export const recordPrefix = 'session/'

export interface SessionRecord extends Place {
  clientId: string
  clean: boolean
  permission: string
  principal: Principal
  createdAt: number
  version: number
  /** The run of a node that its client is connected to. */
  node?: string
  disconnectedAt?: number
  offlineAt?: number
  /** The filters of a persistent session, each with the position after which it counts. */
  subscriptions: [filter: string, qos: Qos, since: number][]
  dropped: number
}

/** How far a persistent session has got. */
export interface Place {
  /** The session is to get the messages that were accepted after this position. */
  upTo: number
  /** Messages up to `upTo` that it is still owed. */
  owed: StoredOwed[]
  /** How many owed messages did not fit into the record. They are lost only if the node crashes. */
  lost?: number
  /** After a crash: messages up to this position may have been sent, and not all of them went out again yet. */
  replay?: number
}

/** Position, QoS, and which of `retain` (1), `dup` (2) and `isChosen` (4) hold. */
type StoredOwed = [position: number, qos: Qos, flags: number]

export function toStored({ position, qos, retain, dup, isChosen }: Owed): StoredOwed {
  return [position, qos, (retain ? 1 : 0) + (dup ? 2 : 0) + (isChosen ? 4 : 0)]
}

export function fromStored([position, qos, flags]: StoredOwed): Owed {
  const isChosen = (flags & 4) !== 0
  return { position, qos, retain: (flags & 1) !== 0, dup: (flags & 2) !== 0, ...(isChosen && { isChosen }) }
}

/**
 * The changes that store a record. Where nodes share the store, they apply only while the store has the record that
 * this node knows: a node that was away does not overwrite a later record, nor bring back a session that has ended.
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

/** The change that removes a record, if no later one is stored. */
export function recordRemoval(clientId: string, storedVersion: number, isShared: boolean): Change {
  const del = recordKey(clientId)
  return isShared ? { del, when: { notNewerThan: storedVersion } } : { del }
}

export function readRecord(value: Buffer): SessionRecord {
  return JSON.parse(value.toString())
}

export function recordKey(clientId: string): string {
  return `${recordPrefix}${encodeURIComponent(clientId)}`
}

/** The client id in a key of a session. */
export function clientIdOf(key: string): string {
  return decodeURIComponent(key.split('/')[1] ?? '')
}

/** Prefix of the received QoS 2 identifiers of a session. Each value is the time at which the session began. */
export function incomingPrefix(clientId: string): string {
  return `incoming/${encodeURIComponent(clientId)}/`
}

/** Remembers a received QoS 2 packet identifier until its PUBREL [MQTT-4.3.3-2]. */
export function incomingChange({ clientId, createdAt }: Session, packetId: number): Change {
  return { put: incomingPrefix(clientId) + packetId, value: String(createdAt) }
}

export type Records = ReturnType<typeof createRecords>

/** Sessions as records, and the changes that store or remove them. */
export function createRecords(parts: {
  store: Store
  reading: Pick<Reading, 'placeOf'>
  nodes: Nodes
  sequences: Sequences
  hubTime: HubTime
  bounds: Pick<SessionBounds, 'maxOwed'>
}) {
  const { store, reading, nodes, sequences, hubTime } = parts
  const { maxOwed } = parts.bounds
  return {
    isStored,
    recordOf,
    placeOf,
    /** Whether the store checks changes: it refuses one when the stored record is not the one that this node knows. */
    areChecked: nodes.isShared,

    /** Whether a record says that its client is connected to this node. */
    isOwn: (record: { node?: string | undefined } | undefined): boolean => record?.node === nodes.self,

    async read(clientId: string): Promise<SessionRecord | undefined> {
      const stored = await store.get(recordKey(clientId))
      return stored && readRecord(stored)
    },

    /** The changes that store a session as it is now, under the next version. */
    changesOf(session: Session): Change[] {
      session.version = versionAfter(session.storedVersion)
      return recordChanges(recordOf(session), session.storedVersion, nodes.isShared)
    },

    /** The changes that store a record in place of the one with this version. */
    replacement: (record: SessionRecord, storedVersion: number): Change[] =>
      recordChanges(record, storedVersion, nodes.isShared),

    /** The next record of a session whose client has gone. */
    offline({ node: _given, ...record }: SessionRecord): SessionRecord {
      return { ...record, version: versionAfter(record.version), ...hubTime.gone() }
    },

    /** The changes that remove the record of a session, if no later one is stored. */
    removalOf(session: Pick<SessionRecord, 'clientId' | 'clean' | 'version'> | undefined): Change[] {
      if (!session || !isStored(session)) return []
      return [recordRemoval(session.clientId, session.version, nodes.isShared)]
    },

    /** The changes that remove all other entries of a session from the store. */
    async leftovers(clientId: string): Promise<Change[]> {
      const changes: Change[] = []
      for (const prefix of [incomingPrefix(clientId), outgoingPrefix(clientId)]) {
        for await (const [key] of store.range(prefix)) changes.push({ del: key })
      }
      return changes
    },
  }

  /**
   * A version greater than `before`, and less than that of the progress that this node stores next. So of two versions
   * the greater is the later one, even where clocks disagree or a clock was set back.
   */
  function versionAfter(before = 0): number {
    sequences.heard(before)
    return sequences.next()
  }

  /** Clean sessions are stored only if nodes share the store: the others must know every client id that is in use. */
  function isStored({ clean }: { clean: boolean }): boolean {
    return !clean || nodes.isShared
  }

  /** How far a session has got. Of too many owed messages it has the first, which may be sent before the next value. */
  function placeOf(session: Session): Place {
    const { upTo, owed } = reading.placeOf(session)
    // A message that was sent at QoS 2 must not be found again in the journal.
    const most = session.hasSentQos2 ? Infinity : maxOwed
    const lost = Math.max(0, owed.length - most)
    return {
      ...{ upTo, owed: owed.slice(0, most).map(toStored) },
      ...(lost > 0 && { lost }),
      ...(session.again && { replay: session.again.upTo }),
    }
  }

  function recordOf(session: Session): SessionRecord {
    const { clientId, clean, permission, principal, createdAt, version, dropped } = session
    const { disconnectedAt, offlineAt } = session
    return {
      ...{ clientId, clean, permission, principal, createdAt, version, dropped },
      ...(offlineAt === undefined && { node: nodes.self }),
      ...(disconnectedAt !== undefined && { disconnectedAt }),
      ...(offlineAt !== undefined && { offlineAt }),
      subscriptions: clean ? [] : filtersOf(session),
      ...(clean ? { upTo: 0, owed: [] } : placeOf(session)),
    }
  }
}

function filtersOf({ subscriptions }: Session): SessionRecord['subscriptions'] {
  const granted = [...subscriptions].filter(([, { isEnding }]) => !isEnding)
  return granted.map(([filter, { qos, since }]) => [filter, qos, since])
}
