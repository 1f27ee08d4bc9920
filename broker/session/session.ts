import type { Principal } from '../../acl/principal.ts'
import type { MqttConnection } from '../connection/connection.ts'
import type { Outgoing } from '../connection/outgoing.ts'
import type { Qos } from '../connection/wire.ts'
import type { QueueEntry } from '../queue/queue-entry.ts'
import { InFlight } from './in-flight.ts'

/** The state of one client id (MQTT 3.1.1 §3.1.2.4): what outlives the connection when `clean` is false. */
export interface Session {
  readonly clientId: string
  readonly clean: boolean
  /** Digest of the permissions it was made with; only the same permissions may take it over. */
  readonly permission: string
  readonly createdAt: number
  principal: Principal
  /** Granted filters. */
  readonly subscriptions: Map<string, Qos>
  /** Which of the filters that other nodes granted was the last of its own, counted over all sessions. */
  grantedElsewhere: number
  /** When its newest filter was granted, as a sequence (`store/nodes/sequences.ts`). */
  grantedAt: number
  /** The node its client is connected to; undefined: offline. */
  node: string | undefined
  /** Number of its record as this node last wrote or heard it: each record has a higher one than the one before. */
  version: number
  /** The same of the record that the store has for certain; undefined: there is none. */
  storedVersion: number | undefined
  /** The connection that has logged in here under this client id, from before its CONNACK on. */
  owner: MqttConnection | undefined
  /** The same connection once it may receive. */
  connection: MqttConnection | undefined
  /** What goes out there: each delivery needs it, and nothing else of the connection. */
  outgoing: Outgoing | undefined
  /** When the last connection ended, milliseconds since the epoch. */
  disconnectedAt: number | undefined
  /** The same as the hub counts its time (`hub-time.ts`); undefined: connected, or not known yet. */
  offlineAt: number | undefined
  /** Messages of a persistent session that are not acknowledged, oldest first, by sequence. */
  readonly queue: Map<number, QueueEntry>
  /** Messages sent and not finished, by packet identifier. */
  readonly inFlight: InFlight
  /** Unsent entries of `keep: latest`, by topic. */
  readonly latest: Map<string, QueueEntry>
  /** Number of `queue` entries not sent yet. */
  waiting: number
  /**
   * QoS 2 messages received and not released, by packet identifier: when this node heard that another node has
   * received it, as a sequence. 0: this node has seen to it that every session gets it.
   */
  readonly incoming: Map<number, number>
  /** QoS 2 messages on their way into the store, by packet identifier; a take-over does not start them anew. */
  readonly processing: Map<number, Promise<void>>
  lastPacketId: number
  /** The run that sends from the queue at the moment; a new connection starts one of its own. */
  flushing: object | undefined
  /** Messages lost to the queue limit or their expiry. */
  dropped: number
}

/** How far the delivery of queued and retained messages runs ahead of the client's acknowledgements. */
export const inFlightWindow = 100
/** Live messages in flight to one client: more wait in the queue of a persistent session; a clean one is cut off. */
export const maxInFlight = 10_000

export function createSession(of: {
  clientId: string
  clean: boolean
  permission: string
  principal: Principal
  createdAt: number
}): Session {
  // Named one by one, so that all sessions have the same hidden class, whoever made `of`.
  // What each delivery looks at comes first, and so lies together.
  return {
    outgoing: undefined,
    permission: of.permission,
    inFlight: new InFlight(),
    lastPacketId: 0,
    clientId: of.clientId,
    clean: of.clean,
    createdAt: of.createdAt,
    principal: of.principal,
    subscriptions: new Map(),
    grantedElsewhere: 0,
    grantedAt: 0,
    node: undefined,
    version: 0,
    storedVersion: undefined,
    owner: undefined,
    connection: undefined,
    disconnectedAt: undefined,
    offlineAt: undefined,
    queue: new Map(),
    latest: new Map(),
    waiting: 0,
    incoming: new Map(),
    processing: new Map(),
    flushing: undefined,
    dropped: 0,
  }
}

/** The client may receive through this connection, the one that logged in here. */
export function attach(session: Session, connection: MqttConnection): void {
  session.connection = connection
  session.outgoing = connection.outgoing
}

/** Nobody has it here any more. */
export function detach(session: Session): void {
  session.owner = undefined
  session.connection = undefined
  session.outgoing = undefined
}

/** Whether its client is connected to another node. */
export function isElsewhere(session: Session): boolean {
  return session.node !== undefined && session.owner === undefined
}

/** A packet identifier not in use [MQTT-2.3.1-2]; there is one, because `inFlight` is bounded. */
export function nextPacketId(session: Session): number {
  do {
    session.lastPacketId = (session.lastPacketId % 65_535) + 1
  } while (session.inFlight.has(session.lastPacketId))
  return session.lastPacketId
}

/** Puts a stored entry on its way: from now on it is in flight. */
export function markSent(session: Session, entry: QueueEntry): number {
  const packetId = nextPacketId(session)
  entry.packetId = packetId
  session.inFlight.set(packetId, entry)
  session.waiting--
  if (session.latest.get(entry.topic) === entry) session.latest.delete(entry.topic)
  return packetId
}

/** Another node has let somebody in under this client id who has other permissions. */
export class ForeignSession extends Error {}

/** The client has closed the connection that logs in. It may have another session by now, on another node. */
export class ClientGone extends Error {}

/** The credential has as many persistent sessions as it may have. */
export class TooManySessions extends Error {}
