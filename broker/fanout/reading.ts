import type { Entry } from '../../journal/entry.ts'
import type { Journal } from '../../journal/journal.ts'
import type { Returnable } from '../../journal/returnable.ts'
import { untilDone } from '../../store/until-done.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { MqttConnection } from '../connection/connection.ts'
import { encodePubrel, lowerQos, type Publish, packetType, preparePublish } from '../connection/wire.ts'
import type { Access } from '../login/access.ts'
import { asksOf, choose, isControlOver, isWanted, withinLimits } from '../session/choice.ts'
import type { Owed } from '../session/in-flight.ts'
import type { Outgoing } from '../session/outgoing-qos2.ts'
import { packetIdOf, type Session, type SessionBounds } from '../session/session.ts'
import type { Recipient } from './writing.ts'

/** Between two attempts to read or store what a connected client is to be sent, milliseconds. */
const retryMs = 500
/** Messages that are read from the journal at once. */
const pageSize = 50
/** A client that leaves one message without acknowledgement for so long, and others behind it waiting, is cut off. */
const unacknowledgedMs = 10_000

/** What is sent of a message. */
type Sendable = Pick<Entry, 'topic' | 'payload' | 'queue'>

export type Reading = ReturnType<typeof createReading>

/**
 * Brings the messages of the journal to the connected persistent sessions. One that keeps up gets each message as it is
 * accepted. One that does not reads them from the journal, as fast as it acknowledges.
 */
export function createReading(parts: {
  journal: Journal
  returnable: Returnable
  outgoing: Outgoing
  mayReceive: Access['mayReceive']
  bounds: SessionBounds
  clock: () => number
  log: Log
  metrics: Metrics
}) {
  const { journal, returnable, outgoing, mayReceive, clock, log, metrics } = parts
  const { queueLimit, maxOwed, inFlightWindow, maxInFlight } = parts.bounds
  /** All messages up to here were handed to the sessions that keep up. */
  let delivered = journal.head()

  return {
    /** Sends a message to those of its recipients that keep up, and says to how many. The others find it in the journal. */
    deliver(entry: Entry, publish: Publish, recipients: Iterable<Recipient>): number {
      delivered = Math.max(delivered, entry.position)
      if (entry.qos === 0) return 0
      let count = 0
      // One for all: nothing is made for each delivery.
      const owed: Owed = { position: entry.position, qos: 1, retain: false, dup: false }
      for (const [session, granted] of recipients) {
        if (!session.isLive || entry.position <= session.upTo) continue
        const isDelivered =
          lowerQos(granted, entry.qos) === 1 && fits(session, owed) && write(session, publish, owed)
        if (isDelivered) count++
        else fallBehind(session, entry.position - 1)
      }
      metrics.deliveries.inc(count)
      return count
    },

    /** All messages up to here were handed to the sessions that keep up. */
    delivered: (): number => delivered,

    /** The session has a connection: repeats what is in flight, then sends what waits. Never rejects. */
    begin(session: Session): void {
      for (const { position, released } of session.inFlight.owed()) {
        if (released) session.connection?.send(encodePubrel(packetIdOf(position)))
      }
      void read(session)
    },

    /** The session has new filters, and is owed these values because of them. */
    owe(session: Session, owed: readonly Owed[]): void {
      const waiting = new Map(session.backlog.map((each) => [each.position, each]))
      for (const each of owed) {
        const before = waiting.get(each.position)
        const isChosen = before !== undefined && (before.isChosen === true || !before.retain)
        if (!before?.dup) waiting.set(each.position, isChosen ? { ...each, isChosen } : each)
      }
      session.backlog = [...waiting.values()]
      // The position of each new filter keeps older messages out.
      fallBehind(session, session.isLive ? delivered : session.upTo)
    },

    /** PUBACK, PUBREC or PUBCOMP of a client. */
    acknowledge,

    /** The session is not connected any more: it has got as far as it has now. */
    stop(session: Session): void {
      if (session.isLive) session.upTo = Math.max(session.upTo, delivered)
      session.isLive = false
    },

    /** Its client has gone: what is more than it may be owed is dropped. */
    leave(session: Session): void {
      const limits = { waiting: maxOwed, owed: Math.max(0, maxOwed - session.inFlight.size) }
      const { owed, dropped } = withinLimits(session.backlog, limits)
      session.backlog = owed
      if (dropped > 0) lose(session, 'queue-limit', dropped)
    },

    /** How far a session has got. */
    placeOf(session: Session): { upTo: number; owed: Owed[] } {
      const inFlight = [...session.inFlight.owed()].filter(({ stored }) => !stored)
      return {
        upTo: session.isLive ? Math.max(session.upTo, delivered) : session.upTo,
        owed: [...inFlight.map((owed) => ({ ...owed, dup: true })), ...session.backlog],
      }
    },
  }

  function fallBehind(session: Session, upTo: number): void {
    session.isLive = false
    session.upTo = Math.max(session.upTo, upTo)
    void read(session)
  }

  function acknowledge(session: Session, type: number, packetId: number): void {
    const flight = session.inFlight.get(packetId)
    if (flight === undefined) {
      // The release of a message this side has forgotten still has to be answered [MQTT-4.3.3-1].
      if (type === packetType.pubrec) session.connection?.send(encodePubrel(packetId))
      return
    }
    if (!continues(flight, type)) {
      session.connection?.cut('protocol', `packet type ${type} does not acknowledge message ${packetId}`)
      return
    }
    if (type !== packetType.pubrec) {
      session.inFlight.delete(packetId)
      if (typeof flight === 'object' && flight.qos === 2) outgoing.finished(session, flight.position)
      // Half a window at once: for each acknowledgement one message would be read.
      const hasRoom = session.inFlight.size <= inFlightWindow / 2
      if (!session.clean && !session.isLive && hasRoom) void read(session)
    } else if (typeof flight === 'object') void release(session, flight, packetId)
    else {
      session.inFlight.set(packetId, 'released')
      session.connection?.send(encodePubrel(packetId))
    }
  }

  /** The received state is stored before PUBREL: after it the client may forget the message [MQTT-4.3.3-1]. */
  async function release(session: Session, owed: Owed, packetId: number): Promise<void> {
    const { connection } = session
    if (!connection) return
    session.inFlight.set(packetId, { ...owed, released: true })
    const stored = await insist(session, connection, () => outgoing.release(session, owed.position))
    if (stored) session.connection?.send(encodePubrel(packetId))
  }

  /** Sends what waits, as far as the window and the network allow; acknowledgements call it again. Never rejects. */
  async function read(session: Session): Promise<void> {
    const { connection } = session
    if (!connection || session.isLive || session.reading) return
    const run = {}
    session.reading = run
    try {
      while (connection.isOpen && session.connection === connection) {
        await connection.paced()
        if (session.inFlight.size >= inFlightWindow || session.connection !== connection) return
        // No await from here to the end of the run: the next message is either delivered live or read.
        session.isLive = session.backlog.length === 0 && session.upTo >= journal.head()
        if (session.isLive) return
        const isGoing =
          session.backlog.length > 0
            ? await sendBacklog(session, connection)
            : await sendNext(session, connection)
        if (!isGoing) return
      }
    } finally {
      if (session.reading === run) session.reading = undefined
    }
  }

  /** False: it goes on when something is acknowledged. */
  async function sendBacklog(session: Session, connection: MqttConnection): Promise<boolean> {
    const waiting = session.backlog.slice(0, inFlightWindow - session.inFlight.size)
    const found = await insist(session, connection, () => messagesOf(session, waiting))
    if (!found || session.connection !== connection) return false
    const terms = termsOf(session)
    for (const [index, message] of found.result.entries()) {
      await connection.paced()
      const owed = waiting[index]
      // A SUBSCRIBE has changed it meanwhile.
      if (!owed || session.backlog[0] !== owed) return true
      if (message && isWanted(owed, message, { ...terms, now: clock() })) {
        if (!(await sendOwed(session, connection, message, owed))) return false
      } else {
        if (!message) lose(session, 'superseded', 1)
        if (owed.stored) outgoing.finished(session, owed.position)
      }
      session.backlog.shift()
    }
    return true
  }

  /** The first of them, as many as make a page; undefined where a message is no longer kept. */
  async function messagesOf(session: Session, waiting: readonly Owed[]): Promise<(Sendable | undefined)[]> {
    const found = await journal.getFirst(waiting.map(({ position }) => position))
    return Promise.all(
      found.map((entry, index) => {
        const { stored, position } = waiting[index] ?? {}
        return entry ?? (stored && position !== undefined ? outgoing.get(session, position) : undefined)
      }),
    )
  }

  async function sendNext(session: Session, connection: MqttConnection): Promise<boolean> {
    const { again } = session
    if (again && session.upTo >= again.upTo) {
      session.again = undefined
      lose(session, 'queue-limit', returnTo(session, again.head))
      return true
    }
    const end = again ? again.upTo : journal.head()
    const found = await insist(session, connection, () => journal.read(session.upTo, end, pageSize))
    if (!found || session.connection !== connection || session.backlog.length > 0) return found !== undefined
    // Asked only now: what is below the floor may have gone while it was read.
    if (session.upTo + 1 < journal.floor()) {
      // What is no longer there cannot be counted: once for all of it.
      lose(session, 'superseded', 1 + returnTo(session, Math.min(journal.floor() - 1, end)))
      return true
    }
    const { asks } = termsOf(session)
    for (const entry of found.result.entries) {
      const { topic, position, queue } = entry
      const qos = lowerQos(asks(topic, position), entry.qos)
      const owed: Owed = { position, qos, retain: false, dup: again !== undefined }
      if (qos > 0 && !isControlOver(queue, clock()) && mayReceive(session.principal, topic)) {
        if (session.inFlight.size >= inFlightWindow) return false
        await connection.paced()
        if (!(await sendOwed(session, connection, entry, owed))) return false
      }
      session.upTo = Math.max(session.upTo, position)
    }
    session.upTo = Math.max(session.upTo, found.result.upTo)
    return true
  }

  /** Up to this position it gets what a session gets that returns. Returns how many messages it has lost. */
  function returnTo(session: Session, upTo: number): number {
    const inFlight = [...session.inFlight.owed()].map((owed) => ({ ...owed, dup: true }))
    const { again } = session
    // After a crash some of it may be in flight, whatever the queue limit is.
    const limits = { waiting: again ? maxOwed : queueLimit, owed: maxOwed + inFlight.length }
    const { owed, dropped } = choose(
      { upTo: session.upTo, owed: inFlight },
      returnable.since(session.upTo, session.subscriptions.keys(), upTo),
      { ...termsOf(session), now: clock(), limits },
    )
    session.backlog = owed.filter(({ dup }) => !dup).map((each) => (again ? { ...each, dup: true } : each))
    session.upTo = Math.max(session.upTo, upTo)
    return dropped
  }

  function termsOf(session: Session) {
    return {
      asks: asksOf(session.subscriptions),
      mayReceive: (topic: string) => mayReceive(session.principal, topic),
    }
  }

  /** False: it must wait, or the connection is gone. */
  async function sendOwed(
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
    const publish = preparePublish(message.topic, message.payload)
    if (!write(session, publish, owed.qos === 1 ? owed : { ...owed, stored: true })) return false
    metrics.deliveries.inc()
    return true
  }

  function fits({ inFlight }: Session, { position }: Owed): boolean {
    return inFlight.size < maxInFlight && !inFlight.has(packetIdOf(position))
  }

  /** False: the connection is gone, or cut off because it does not read. */
  function write(session: Session, publish: Publish, owed: Owed): boolean {
    const { connection } = session
    if (!connection?.isOpen) return false
    const packetId = packetIdOf(owed.position)
    session.inFlight.set(packetId, owed)
    connection.deliver(publish, owed.qos, { retain: owed.retain, dup: owed.dup }, packetId)
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

  function lose(session: Session, reason: 'superseded' | 'queue-limit', count: number): void {
    session.dropped += count
    metrics.messagesDropped.inc({ reason }, count)
  }

  /**
   * As often as it takes while the client is there: it cannot help, and would only come back and wait. Undefined:
   * it is gone. Never rejects.
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

/** Whether this packet is the next word about the message; any other breaks the protocol [MQTT-4.8.0-1]. */
function continues(flight: Owed | 'qos1' | 'qos2' | 'released', type: number): boolean {
  const released = typeof flight === 'object' ? flight.released === true : flight === 'released'
  const qos1 = typeof flight === 'object' ? flight.qos === 1 : flight === 'qos1'
  if (qos1) return type === packetType.puback
  // A repeated PUBREC asks for the PUBREL again.
  return type === packetType.pubrec || (type === packetType.pubcomp && released)
}
