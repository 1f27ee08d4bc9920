import type { Entry } from '../../journal/entry.ts'
import type { RetainedMessages } from '../../journal/retained.ts'
import { untilDone } from '../../store/until-done.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { MqttConnection } from '../connection/connection.ts'
import { type Publish, preparePublish } from '../connection/frames.ts'
import type { Qos } from '../connection/protocol.ts'
import type { Owed } from '../session/in-flight.ts'
import type { Outgoing } from '../session/outgoing-qos2.ts'
import { packetIdOf, type Session } from '../session/session.ts'

/** Pause between two tries to read or store a message for a connected client, milliseconds. */
const retryMs = 500
/** Time after which a client is cut off if its unacknowledged message holds up others, milliseconds. */
export const unacknowledgedMs = 10_000

/** The parts of a message that the node needs to send it. */
export type Sendable = Pick<Entry, 'topic' | 'payload' | 'queue'>

export type Sending = ReturnType<typeof createSending>

/** Sends messages to connected persistent sessions. */
export function createSending(parts: {
  outgoing: Outgoing
  retained: Pick<RetainedMessages, 'current'>
  /** Maximum number of messages in flight to one client. */
  maxInFlight: number
  log: Log
  metrics: Metrics
}) {
  const { outgoing, retained, maxInFlight, log, metrics } = parts
  return { send, fits, write, hasRoom, insist }

  /** Sends a message. At QoS 2, stores it first. False: the message must wait, or the connection is gone. */
  async function send(
    session: Session,
    connection: MqttConnection,
    message: Sendable,
    owed: Owed,
  ): Promise<boolean> {
    if (!fits(session, owed)) {
      watchUnacknowledged(session, connection, packetIdOf(owed.position))
      return false
    }
    const isStored = owed.qos === 1 || owed.stored
    if (!isStored) {
      const stored = await insist(session, connection, () => outgoing.store(session, message, owed))
      if (!stored || session.connection !== connection) return false
    }
    const publish = preparePublish(message)
    if (!write(session, publish, owed.qos === 1 ? owed : { ...owed, stored: true }, message.topic))
      return false
    metrics.deliveries.inc()
    return true
  }

  function fits({ inFlight }: Session, { position }: Owed): boolean {
    return inFlight.size < maxInFlight && !inFlight.has(packetIdOf(position))
  }

  /** Whether the client's buffer takes a message at once. */
  function hasRoom({ connection }: Session, publish: Publish, qos: Qos): boolean {
    return connection?.outgoing.hasRoom(publish.packet(qos, {}).length) ?? false
  }

  /** Writes a message. False: the connection is gone, or was cut off as too slow. */
  function write(session: Session, publish: Publish, owed: Owed, topic: string): boolean {
    const { connection } = session
    if (!connection?.isOpen) return false
    const packetId = packetIdOf(owed.position)
    session.inFlight.set(packetId, owed)
    // To a bridge, RETAIN says whether this is the retained value now, however the message came to be sent.
    const retain = session.isBridge ? retained.current(topic)?.position === owed.position : owed.retain
    const bytes = publish.packet(owed.qos, { retain, dup: owed.dup }, packetId)
    if (connection.outgoing.accepts(bytes.length, owed.qos)) connection.outgoing.write(bytes, true)
    return connection.isOpen
  }

  function watchUnacknowledged(session: Session, connection: MqttConnection, packetId: number): void {
    const flight = session.inFlight.get(packetId)
    if (flight === undefined) return
    const look = () => {
      if (session.connection === connection && session.inFlight.get(packetId) === flight) {
        connection.cut('slow', `message ${packetId} not acknowledged`)
      }
    }
    setTimeout(look, unacknowledgedMs).unref()
  }

  /**
   * Repeats an attempt until it succeeds. It does not cut off the client: the client would come back and wait again.
   * Resolves with undefined if the client has gone. Never rejects.
   */
  function insist<T>(session: Session, connection: MqttConnection, attempt: () => Promise<T>) {
    const failed = (err: unknown) => {
      metrics.storeFailures.inc()
      log.error({ err, clientId: session.clientId }, 'messages not sent yet')
    }
    const isWanted = () => connection.isOpen && session.connection === connection
    return untilDone(attempt, { failed, isWanted, pauseMs: retryMs })
  }
}
