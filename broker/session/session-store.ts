import type { Principal } from '../../acl/principal.ts'
import type { Change } from '../../store/store.ts'
import type { Qos } from '../connection/wire.ts'
import type { Session } from './session.ts'

/*
 * How sessions lie in the store: `session/{clientId}` is the session, `incoming/{clientId}/{packetId}` a
 * received QoS 2 packet identifier of it.
 */

export const recordPrefix = 'session/'
export const incomingPrefix = 'incoming/'

export interface SessionRecord {
  clientId: string
  clean: boolean
  permission: string
  principal: Principal
  createdAt: number
  version: number
  /** The node its client is connected to. */
  node?: string
  disconnectedAt?: number
  offlineAt?: number
  /** Of a persistent session. */
  subscriptions: [filter: string, qos: Qos][]
  grantedAt: number
}

/**
 * Stores a session as it is. Where nodes share the store, the changes apply only while it has the record that this node
 * knows of: who was away does not write over what came later, nor bring back a session that has ended.
 */
export function recordChanges(session: Session, isShared: boolean): Change[] {
  const { clientId, version, storedVersion } = session
  const put = recordKey(clientId)
  const value = JSON.stringify(recordOf(session))
  if (!isShared) return [{ put, value }]
  const change = { put, value, order: { time: version, horizon: Infinity } }
  if (storedVersion === undefined) return [{ ...change, when: 'absent' }]
  return [
    { check: put, when: 'present' },
    { ...change, when: { notNewerThan: storedVersion } },
  ]
}

/** Removes the record of a session, where it is no later one. */
export function recordRemoval({ clientId, storedVersion = 0 }: Session, isShared: boolean): Change {
  const del = recordKey(clientId)
  return isShared ? { del, when: { notNewerThan: storedVersion } } : { del }
}

/** Removes the record of a log-in that was given up and may have been stored, and no other. */
export function attemptRemoval({ clientId, version }: Session, isShared: boolean): Change {
  const del = recordKey(clientId)
  return isShared ? { del, when: { time: version } } : { del }
}

function recordOf(session: Session): SessionRecord {
  const { clientId, clean, permission, principal, createdAt, grantedAt } = session
  const { version, node, disconnectedAt, offlineAt } = session
  return {
    ...{ clientId, clean, permission, principal, createdAt, grantedAt, version },
    ...(node !== undefined && { node }),
    ...(disconnectedAt !== undefined && { disconnectedAt }),
    ...(offlineAt !== undefined && { offlineAt }),
    subscriptions: clean ? [] : [...session.subscriptions],
  }
}

/** Records of earlier releases were of persistent sessions only. */
export function readRecord(value: Buffer): SessionRecord {
  const { claimedAt = 0, ...record } = JSON.parse(value.toString())
  return { clean: false, version: claimedAt, grantedAt: 0, ...record }
}

export function recordKey(clientId: string): string {
  return `${recordPrefix}${encodeURIComponent(clientId)}`
}

/** The client id in a key of a session. */
export function clientIdOf(key: string): string {
  return decodeURIComponent(key.split('/')[1] ?? '')
}

/** Remembers a received QoS 2 packet identifier until its PUBREL [MQTT-4.3.3-2]. */
export function incomingChange(session: Session, packetId: number): Change {
  return { put: incomingKey(session.clientId, packetId), value: identityOf(session) }
}

/** What tells sessions of one client id apart that follow each other. */
export function identityOf({ createdAt }: Pick<Session, 'createdAt'>): string {
  return String(createdAt)
}

export function incomingKey(clientId: string, packetId: number): string {
  return `${incomingPrefix}${encodeURIComponent(clientId)}/${packetId}`
}

/** Whether a later session of the same client id writes the same key. */
export function isReused(change: Change): boolean {
  return 'del' in change && (change.del.startsWith(recordPrefix) || change.del.startsWith(incomingPrefix))
}
