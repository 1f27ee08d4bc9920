import type { Principal } from '../../acl/principal.ts'
import type { MqttConnection } from '../connection/connection.ts'
import type { Outgoing } from '../connection/socket.ts'
import type { Qos } from '../connection/wire.ts'
import { InFlight, type Owed } from './in-flight.ts'

/**
 * The session of a client that is connected to this node (MQTT 3.1.1 §3.1.2.4). For every other session the store has a
 * record, and the memory has a `Known` (`known-sessions.ts`).
 */
export interface Session {
  readonly clientId: string
  readonly clean: boolean
  /** Digest of the permissions that the session was made with. A client needs the same ones to continue it. */
  readonly permission: string
  readonly createdAt: number
  principal: Principal
  /** Granted filters. */
  readonly subscriptions: Map<string, Subscription>
  /** Version of the record that this node wrote last. Each record has a higher version than the record before. */
  version: number
  /** Version of the record that is certainly stored. Undefined: none is. */
  storedVersion: number | undefined
  /** `upTo` in the record that is certainly stored. */
  storedUpTo: number | undefined
  /** The connection that has logged in under this client id, from before its CONNACK on. */
  owner: MqttConnection | undefined
  /** The same connection as `owner`, once it may receive messages. */
  connection: MqttConnection | undefined
  /** The outgoing side of `connection`: a delivery needs no other part of the connection. */
  outgoing: Outgoing | undefined
  /** Messages sent and not finished, by packet identifier. */
  readonly inFlight: InFlight
  /** QoS 2 messages received and not released, by packet identifier. */
  readonly incoming: Set<number>
  /** QoS 2 messages on their way into the store, by packet identifier; a take-over does not start them anew. */
  readonly processing: Map<number, Promise<boolean>>
  lastPacketId: number
  /** For a persistent session: messages up to here are done, except those in flight or in the backlog. */
  upTo: number
  /** True: the session gets messages as they are accepted. False: it gets its backlog, then the journal from `upTo`. */
  isLive: boolean
  /** Owed messages that were not sent on this connection, in this order. */
  backlog: Owed[]
  /**
   * Set after a crash. Up to `upTo` the session gets again all that may have been sent. From there to `head`, the end
   * of the journal at log-in, it gets the messages of any returning session. Undefined: the backlog holds all of them.
   */
  again: { upTo: number; head: number } | undefined
  /** QoS 2 messages were sent to it. The hub publishes at QoS 1: only the broker on its own sends any. */
  hasSentQos2: boolean
  /** The pass over the journal that sends to this session now. Undefined: none does. */
  reading: object | undefined
  /** Messages lost to the queue limit, or because they are no longer kept. */
  dropped: number
  /** When the connection ended: milliseconds since the epoch, and as the hub counts its time (`hub-time.ts`). */
  disconnectedAt: number | undefined
  offlineAt: number | undefined
}

/** A granted filter. */
export interface Subscription {
  qos: Qos
  /** Messages accepted after this position count. */
  since: number
  /** An UNSUBSCRIBE is on its way into the store. Messages accepted before that still count. */
  isEnding?: boolean
}

/** How many messages a persistent session may have that its client has not acknowledged. */
export interface SessionBounds {
  /** Messages that were never sent. */
  queueLimit: number
  /** Messages that it is owed while it is away. */
  maxOwed: number
  /** How far the delivery of waiting messages runs ahead of the client's acknowledgements. */
  inFlightWindow: number
  /** Messages in flight. Above this the session reads further ones from the journal. Not above `maxOwed`. */
  maxInFlight: number
}

/** Tests set lower bounds, to reach them with fewer messages. */
export const defaultBounds = { maxOwed: 1_000, inFlightWindow: 100, maxInFlight: 1_000 }

export function createSession(of: {
  clientId: string
  clean: boolean
  permission: string
  principal: Principal
  createdAt: number
  owner: MqttConnection | undefined
  /** The QoS 2 messages that its client sends, if it was connected to this node a moment ago. */
  receiving?: Pick<Session, 'incoming' | 'processing'> | undefined
}): Session {
  // Fields are named one by one, so that all sessions have one hidden class, whatever made `of`.
  // The fields that each delivery reads come first, and so lie together.
  return {
    outgoing: undefined,
    permission: of.permission,
    inFlight: new InFlight(),
    lastPacketId: 0,
    isLive: false,
    upTo: 0,
    clientId: of.clientId,
    clean: of.clean,
    createdAt: of.createdAt,
    principal: of.principal,
    subscriptions: new Map(),
    version: 0,
    storedVersion: undefined,
    storedUpTo: undefined,
    owner: of.owner,
    connection: undefined,
    incoming: of.receiving?.incoming ?? new Set(),
    processing: of.receiving?.processing ?? new Map(),
    backlog: [],
    again: undefined,
    hasSentQos2: false,
    reading: undefined,
    dropped: 0,
    disconnectedAt: undefined,
    offlineAt: undefined,
  }
}

/** Gives a session its connection, which has logged in on this node. From now on the client may receive through it. */
export function attach(session: Session, connection: MqttConnection): void {
  session.connection = connection
  session.outgoing = connection.outgoing
}

/** No connection of this node has the session any more. */
export function detach(session: Session): void {
  session.owner = undefined
  session.connection = undefined
  session.outgoing = undefined
}

/** A packet identifier not in use [MQTT-2.3.1-2]; there is one, because `inFlight` is bounded. */
export function nextPacketId(session: Session): number {
  do {
    session.lastPacketId = (session.lastPacketId % 65_535) + 1
  } while (session.inFlight.has(session.lastPacketId))
  return session.lastPacketId
}

/** The packet identifier of a message to a persistent session. It is the same after a crash, and on another node. */
export function packetIdOf(position: number): number {
  return 1 + ((position - 1) % 65_535)
}
