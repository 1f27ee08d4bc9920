import type { Principal } from '../../acl/principal.ts'
import type { OutgoingBuffer } from '../../listener/outgoing-buffer.ts'
import type { MqttConnection } from '../connection/connection.ts'
import type { Qos } from '../connection/protocol.ts'
import { InFlight } from './in-flight.ts'
import { Waiting } from './waiting.ts'

/**
 * A session (MQTT 3.1.1 §3.1.2.4) with one connection of its client, from the log-in until the end of the connection is
 * stored. Of other sessions, a node has only the `KnownSession`.
 */
export interface Session {
  /**
   * `claiming`: the client logs in, and the store has not decided yet whether this node gets the session.
   * `connected`: this node has the session. `leaving`: the client of a persistent session has gone, and this node has
   * not stored that yet. `over`: this node has nothing to do with the session any more.
   */
  state: 'claiming' | 'connected' | 'leaving' | 'over'
  readonly clientId: string
  readonly clean: boolean
  /** Digest of the permissions that a client needs to resume the session. */
  readonly permission: string
  readonly createdAt: number
  /** The client is a mosquitto bridge: RETAIN tells it what is retained, also on live messages (docs/bridges.md). */
  readonly isBridge: boolean
  principal: Principal
  /** The subscriptions that the hub has granted, by topic filter. */
  readonly subscriptions: Map<string, Subscription>
  /** Version of the record that this node last tried to store. Each new record gets a higher version. */
  version: number
  /** Version of the stored record that this node knows. Undefined: the store has none. */
  storedVersion: number | undefined
  /** `upTo` in the last record that this node has certainly stored. */
  storedUpTo: number | undefined
  /** The connection of the client, until it has gone. */
  connection: MqttConnection | undefined
  /** The outgoing side of `connection`, from CONNACK on: only with it the client gets messages. */
  outgoing: OutgoingBuffer | undefined
  /** The messages in flight to the client, by packet identifier. */
  readonly inFlight: InFlight
  /** The QoS 2 messages that the client has sent. Undefined until the first one. */
  receiving: Receiving | undefined
  lastPacketId: number
  /**
   * Position in the journal. Up to here, the session is owed only `inFlight` and `backlog`. A live session has got
   * later messages as well (`fanout/reading.ts`).
   */
  upTo: number
  /**
   * How a persistent session gets messages. `live`: each new message at once. `catching up`: first the backlog, then
   * the journal after `upTo`. `paused`: nothing, until the client has acknowledged enough.
   */
  reading: 'paused' | 'catching up' | 'live'
  /** Owed messages that were not yet sent on this connection, in order of sending. */
  backlog: Waiting
  /**
   * Set if a crash left more messages to repeat than the backlog may hold. Up to `replay.upTo`, the messages of the
   * journal are sent again. From there to `head` (the end at log-in), messages are chosen as on any return.
   */
  replay: { upTo: number; head: number } | undefined
  /** True only in tests: the hub publishes at QoS 1. */
  hasSentQos2: boolean
  /** Number of messages lost to the queue limit, or missing in the journal. */
  dropped: number
  /** When the connection ended, milliseconds: since the epoch, and in hub time (`offlineAt`). */
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

/** Limits for the messages that a persistent session is owed. */
export interface SessionBounds {
  /** Maximum number of waiting messages that were never sent. */
  queueLimit: number
  /** Maximum number of owed messages while the client is away, sent before or not. */
  maxOwed: number
  /** Maximum number in flight while the session reads its backlog or the journal. */
  inFlightWindow: number
  /**
   * Maximum number of messages in flight. This bound must not be above `maxOwed`. The session reads further messages
   * later from the journal.
   */
  maxInFlight: number
  /** Maximum number of owed messages, and of sessions, that one stored value of `progress.ts` lists. */
  maxListed: number
}

/** The QoS 2 messages that a client has sent, by packet identifier. */
interface Receiving {
  /** The digests of those that wait for PUBREL. Empty: the digest is not known. */
  readonly incoming: Map<number, string>
  /** Those that this node is storing. A repetition after a reconnect must not be stored as a second message. */
  readonly processing: Map<number, { digest: string; accepted: Promise<boolean> }>
}

/** What a session keeps of the QoS 2 messages of its client. Most clients never send one. */
export function receivingOf(session: Session): Receiving {
  session.receiving ??= { incoming: new Map(), processing: new Map() }
  return session.receiving
}

/** Whether each QoS 2 message is accepted that this node is storing. */
export function underway({ receiving }: Session): Promise<boolean>[] {
  return [...(receiving?.processing.values() ?? [])].map(({ accepted }) => accepted)
}

/** Tests set smaller numbers, to reach these bounds with fewer messages. */
export const defaultBounds = { maxOwed: 1_000, inFlightWindow: 100, maxInFlight: 1_000, maxListed: 50_000 }

export function createSession(of: {
  clientId: string
  clean: boolean
  permission: string
  principal: Principal
  createdAt: number
  connection: MqttConnection | undefined
  /** That of the client's entry in `storingIncoming` of `local-sessions.ts`, if there is one. */
  receiving?: Receiving | undefined
}): Session {
  // All fields in one order give all sessions one hidden class in V8. The fields that each delivery reads come first,
  // together in memory.
  return {
    outgoing: undefined,
    permission: of.permission,
    inFlight: new InFlight(),
    lastPacketId: 0,
    reading: 'paused',
    isBridge: of.connection?.request?.isBridge ?? false,
    upTo: 0,
    clientId: of.clientId,
    clean: of.clean,
    createdAt: of.createdAt,
    principal: of.principal,
    subscriptions: new Map(),
    version: 0,
    storedVersion: undefined,
    storedUpTo: undefined,
    state: 'claiming',
    connection: of.connection,
    receiving: of.receiving,
    backlog: new Waiting(),
    replay: undefined,
    hasSentQos2: false,
    dropped: 0,
    disconnectedAt: undefined,
    offlineAt: undefined,
  }
}

/** Returns an unused packet identifier [MQTT-2.3.1-2]. There always is one, because `inFlight` is bounded. */
export function nextPacketId(session: Session): number {
  do {
    session.lastPacketId = (session.lastPacketId % 65_535) + 1
  } while (session.inFlight.has(session.lastPacketId))
  return session.lastPacketId
}

/**
 * Returns the packet identifier of a message to a persistent session. After a crash, a repetition has the same
 * identifier [MQTT-4.4.0-1].
 */
export function packetIdOf(position: number): number {
  return 1 + ((position - 1) % 65_535)
}
