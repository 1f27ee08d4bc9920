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
  claimedAt: number
  /** The node its client is connected to. */
  node?: string
  disconnectedAt?: number
  offlineAt?: number
  /** Of a persistent session. */
  subscriptions: [filter: string, qos: Qos][]
}

export function recordChange(session: Session): Change {
  const { clientId, clean, permission, principal, createdAt, claimedAt, node, disconnectedAt, offlineAt } =
    session
  const record: SessionRecord = {
    ...{ clientId, clean, permission, principal, createdAt, claimedAt },
    ...(node !== undefined && { node }),
    ...(disconnectedAt !== undefined && { disconnectedAt }),
    ...(offlineAt !== undefined && { offlineAt }),
    subscriptions: clean ? [] : [...session.subscriptions],
  }
  return { put: recordKey(clientId), value: JSON.stringify(record) }
}

/** Records of earlier releases were of persistent sessions only. */
export function readRecord(value: Buffer): SessionRecord {
  return { clean: false, claimedAt: 0, ...JSON.parse(value.toString()) }
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
