import type { Principal } from '../../acl/principal.ts'
import type { MqttConnection } from '../connection/connection.ts'
import type { Qos } from '../connection/protocol.ts'
import type { OutgoingBuffer } from '../connection/socket.ts'
import { InFlight, type Owed } from './in-flight.ts'

/**
 * A session (MQTT 3.1.1 §3.1.2.4) whose client is connected to this node, is logging in, or has just left. All other
 * sessions are records in the store, with a summary in the memory of this node (`KnownSession` in `known-sessions.ts`).
 */
export interface Session {
  readonly clientId: string
  readonly clean: boolean
  /** Digest of the permissions under which the session was made. A client needs the same permissions to resume it. */
  readonly permission: string
  readonly createdAt: number
  principal: Principal
  /** The subscriptions that the hub has granted, by topic filter. */
  readonly subscriptions: Map<string, Subscription>
  /** Version of the record that this node last tried to store. Each record has a higher version than the former one. */
  version: number
  /** Version of the stored record that this node has read or written last. Undefined: the store has no record. */
  storedVersion: number | undefined
  /** `upTo` in the last record that this node has certainly stored. */
  storedUpTo: number | undefined
  /** The connection that has logged in under this client id. Set before the node sends CONNACK. */
  owner: MqttConnection | undefined
  /** The same connection as `owner`. Set after CONNACK, when the client may receive messages. */
  connection: MqttConnection | undefined
  /** The outgoing side of `connection`. A delivery needs no other part of the connection. */
  outgoing: OutgoingBuffer | undefined
  /** The messages in flight to the client, by packet identifier. */
  readonly inFlight: InFlight
  /** Packet identifiers of QoS 2 messages that the client has published, and not yet released by PUBREL. */
  readonly incoming: Set<number>
  /**
   * QoS 2 messages of the client that this node is storing, by packet identifier. If the client reconnects meanwhile
   * and sends such a message again, the node does not store the message twice.
   */
  readonly processing: Map<number, Promise<boolean>>
  lastPacketId: number
  /**
   * Position in the journal. Of the messages up to this position, the persistent session still has to get or to
   * acknowledge only those in `inFlight` and in `backlog`. While `isLive` is true, `HandedOut.upTo`
   * (`fanout/reading.ts`) replaces this position if it is higher.
   */
  upTo: number
  /**
   * True: the node sends each message as soon as the hub has accepted it. False: the node first sends the backlog, then
   * the messages of the journal after `upTo`.
   */
  isLive: boolean
  /** Messages that the session has to get and that were not yet sent on this connection, in the order of sending. */
  backlog: Owed[]
  /**
   * Set if a crash left more messages to repeat than the backlog may hold. Up to `replay.upTo`, the session reads the
   * journal, and gets again every message that may have been sent. From there to `replay.head` (the end of the journal
   * at log-in) it gets only the messages that any returning session gets.
   */
  replay: { upTo: number; head: number } | undefined
  /** Whether the node has sent QoS 2 messages to the client. The hub publishes at QoS 1, so only tests send any. */
  hasSentQos2: boolean
  /** Identifies the call of `read` (`fanout/catching-up.ts`) that sends to this session now. Undefined: none runs. */
  currentRead: object | undefined
  /** Number of messages that the session lost: to the queue limit, or because the journal no longer keeps them. */
  dropped: number
  /** When the connection ended: in milliseconds since the epoch, and in hub time (`offlineAt`, see `hub-time.ts`). */
  disconnectedAt: number | undefined
  offlineAt: number | undefined
}

/** A granted topic filter. */
export interface Subscription {
  qos: Qos
  /** The filter applies to messages after this position in the journal. */
  since: number
  /** This node is storing an UNSUBSCRIBE. Until that is stored, the filter still applies. */
  isEnding?: boolean
}

/** Limits for the number of messages that a persistent session still has to get, or to acknowledge. */
export interface SessionBounds {
  /** Maximum number of waiting messages that were never sent. */
  queueLimit: number
  /**
   * Maximum number of messages that the session is owed while its client is away, whether they were sent before or not.
   */
  maxOwed: number
  /**
   * Maximum number of messages in flight while the node sends messages from the backlog or from the journal.
   */
  inFlightWindow: number
  /**
   * Maximum number of messages in flight. At this number, further messages stay in the journal, and the
   * session reads them later. Must not be greater than `maxOwed`.
   */
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
  /** QoS 2 messages of the client's last connection to this node, if this node is still storing some of them. */
  receiving?: Pick<Session, 'incoming' | 'processing'> | undefined
}): Session {
  // Each field is named here, so V8 gives all sessions the same hidden class, whichever code made the argument. The
  // fields that each delivery reads come first, because they then lie together in memory.
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
    replay: undefined,
    hasSentQos2: false,
    currentRead: undefined,
    dropped: 0,
    disconnectedAt: undefined,
    offlineAt: undefined,
  }
}

/** Gives a session its connection after CONNACK. From now on the node may send messages to the client. */
export function attach(session: Session, connection: MqttConnection): void {
  session.connection = connection
  session.outgoing = connection.outgoing
}

/** Separates a session from its connection. */
export function detach(session: Session): void {
  session.owner = undefined
  session.connection = undefined
  session.outgoing = undefined
}

/** Returns an unused packet identifier [MQTT-2.3.1-2]. There always is one, because `inFlight` is bounded. */
export function nextPacketId(session: Session): number {
  do {
    session.lastPacketId = (session.lastPacketId % 65_535) + 1
  } while (session.inFlight.has(session.lastPacketId))
  return session.lastPacketId
}

/**
 * Returns the packet identifier of a message to a persistent session. The identifier follows from the position of the
 * message, so it is the same after a crash and on another node.
 */
export function packetIdOf(position: number): number {
  return 1 + ((position - 1) % 65_535)
}
