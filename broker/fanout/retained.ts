import { setImmediate as nextTurn } from 'node:timers/promises'
import { filterMatches } from '../../event/topic.ts'
import type { RetainedMessages, RetainedValue } from '../../journal/retained.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { MqttConnection } from '../connection/connection.ts'
import { lowerQos, preparePublish, type Qos } from '../connection/wire.ts'
import type { Access } from '../login/access.ts'
import type { Owed } from '../session/in-flight.ts'
import { defaultBounds, packetIdOf, type Session } from '../session/session.ts'
import type { FanOut } from './fanout.ts'
import { sendRetained } from './writing.ts'

export type RetainedSending = ReturnType<typeof createRetainedSending>

/** Most values that are looked up in one turn of the event loop. Then other work goes on. */
const burst = 50
const { inFlightWindow } = defaultBounds

/**
 * Sends the retained messages of newly granted filters [MQTT-3.3.1-6], at the pace of the client. A value is looked up
 * at the moment of sending, so that no older value follows a live message. A value that the client got live since it
 * subscribed does not come again. Values for a persistent session above QoS 0 are owed to it, and come in the order of
 * the journal.
 */
export function createRetainedSending(parts: {
  retained: RetainedMessages
  mayReceive: Access['mayReceive']
  live: Pick<FanOut, 'sending' | 'sent'>
  log: Log
  metrics: Metrics
}) {
  const { retained, mayReceive, live, log, metrics } = parts
  /** Filters that wait until the present ones are done. A client that repeats a filter again and again adds nothing. */
  const asked = new WeakMap<MqttConnection, Map<string, Grant>>()
  const gotLive = createGotLive(retained)

  return {
    granting: gotLive.granting,
    dropped: gotLive.dropped,

    /** The values that a persistent session is owed because of filters that it was just granted. */
    owedFor: (session: Session, filters: ReadonlySet<string>): Owed[] =>
      retainedOwed(session, filters, parts),

    /** Sends the retained messages of filters. Call it when they are granted, and stored if they have to be. */
    start(session: Session, filters: ReadonlySet<string>, grant: Grant): void {
      const { connection } = session
      if (!connection || filters.size === 0) return
      const isRunning = asked.has(connection)
      const waiting = asked.get(connection) ?? new Map<string, Grant>()
      for (const filter of filters) waiting.set(filter, grant)
      asked.set(connection, waiting)
      if (!isRunning) void run(session, connection)
    },
  }

  async function run(session: Session, connection: MqttConnection): Promise<void> {
    try {
      for (;;) {
        // After this turn a value whose commit was on its way at the SUBACK can be found.
        await nextTurn()
        const filters = asked.get(connection)
        if (!filters || filters.size === 0 || session.connection !== connection) return
        asked.set(connection, new Map())
        await sendAll(session, connection, filters)
      }
    } catch (error) {
      log.error({ err: error, clientId: session.clientId }, 'retained messages not delivered')
      connection.cut('error', 'retained messages not delivered')
    } finally {
      asked.delete(connection)
    }
  }

  async function sendAll(
    session: Session,
    connection: MqttConnection,
    filters: ReadonlyMap<string, Grant>,
  ): Promise<void> {
    const underway: Due[] = []
    await sendPaced(session, connection, dueOf(filters, retained), underway)
    if (underway.length === 0) return
    await live.sent()
    await sendPaced(session, connection, underway, undefined)
  }

  async function sendPaced(
    session: Session,
    connection: MqttConnection,
    due: readonly Due[],
    underway: Due[] | undefined,
  ): Promise<void> {
    for (let next = 0; next < due.length; ) {
      await nextTurn()
      await connection.paced()
      const { inFlight } = session
      while (inFlight.size > inFlightWindow - burst && connection.isOpen) {
        await inFlight.fallsTo(inFlightWindow - burst)
      }
      if (session.connection !== connection || !connection.isOpen) return
      next += send(session, connection, due.slice(next, next + burst), underway)
    }
  }

  /**
   * Sends the first items, as many as the connection should take at once, and returns how many. In the first pass it
   * moves a topic to `underway` if a message is just going out there. When that message is out, the hub knows whether
   * this client got it. So no older value follows.
   */
  function send(
    session: Session,
    connection: MqttConnection,
    due: readonly Due[],
    underway: Due[] | undefined,
  ): number {
    let done = 0
    let bytes = 0
    for (const item of due) {
      if (bytes >= connection.outgoing.paceBytes) break
      done++
      const { topic, filters } = item
      // Filters given up meanwhile bring nothing more [MQTT-3.10.4-2].
      const granted = highest([...filters.keys()].map((filter) => session.subscriptions.get(filter)?.qos))
      const value = retained.current(topic)
      if (granted === undefined || !value || !mayReceive(session.principal, topic)) continue
      const qos = lowerQos(granted, value.qos)
      // The value is owed to the session: see `owedFor`.
      if (!session.clean && qos > 0) continue
      const sending = live.sending(topic)
      if (underway && sending.length > 0) {
        underway.push(item)
        continue
      }
      // The value has been published meanwhile, and is still going out.
      if (sending.includes(value.position)) continue
      if (gotLive.has(session, connection, filters, value)) continue
      bytes += value.payload.length
      metrics.deliveries.inc()
      sendRetained(session, preparePublish(topic, value.payload), qos)
    }
    return done
  }
}

interface Due {
  topic: string
  /** The new filters that match it. */
  filters: Map<string, Grant>
}

/** The topics with a value that the new filters match. */
function dueOf(filters: ReadonlyMap<string, Grant>, retained: RetainedMessages): Due[] {
  const matching = new Map<string, Due>()
  for (const [filter, grant] of filters) {
    for (const topic of retained.topics(filter)) {
      const due = matching.get(topic) ?? { topic, filters: new Map() }
      due.filters.set(filter, grant)
      matching.set(topic, due)
    }
  }
  return [...matching.values()]
}

function highest(qos: readonly (Qos | undefined)[]): Qos | undefined {
  return qos.reduce((best, each) => (best === undefined || (each !== undefined && each > best) ? each : best))
}

/** When filters were granted: the moment, and how many messages the client had lost until then. */
interface Grant {
  granted: number
  lost: number
}

/** Finds out which retained values a client has got live since it subscribed. */
function createGotLive(retained: RetainedMessages) {
  /** How many live messages did not fit into the outgoing buffer of a connection. */
  const drops = new WeakMap<MqttConnection, number>()

  return {
    /** The moment before filters are granted, and the losses so far: values that go out later reach the client live. */
    granting: (session: Session): Grant => ({
      granted: retained.moment(),
      lost: lostOf(session, session.connection),
    }),

    /** A live message did not fit into the outgoing buffer of the connection. */
    dropped: (connection: MqttConnection): void =>
      void drops.set(connection, (drops.get(connection) ?? 0) + 1),

    /** Whether each of these new filters brought the value live, and the client has lost no message since. */
    has(
      session: Session,
      connection: MqttConnection,
      filters: ReadonlyMap<string, Grant>,
      value: RetainedValue,
    ): boolean {
      const lost = lostOf(session, connection)
      const grants = [...filters]
      if (grants.some(([, grant]) => grant.lost !== lost)) return false
      if (!isRead(session, value)) return grants.every(([, { granted }]) => (value.sent ?? 0) > granted)
      return grants.every(
        ([filter]) => value.position > (session.subscriptions.get(filter)?.since ?? Infinity),
      )
    },
  }

  function lostOf(session: Session, connection: MqttConnection | undefined): number {
    return session.dropped + ((connection && drops.get(connection)) ?? 0)
  }
}

/** Whether the session gets the value from the journal, because of one of its filters. */
function isRead({ clean, subscriptions }: Session, { topic, qos }: RetainedValue): boolean {
  if (clean || qos === 0) return false
  return [...subscriptions].some(([filter, granted]) => granted.qos > 0 && filterMatches(filter, topic))
}

/** The retained messages that a persistent session is owed above QoS 0 because of filters that it was just granted. */
function retainedOwed(
  session: Session,
  filters: ReadonlySet<string>,
  { retained, mayReceive }: { retained: RetainedMessages; mayReceive: Access['mayReceive'] },
): Owed[] {
  const owed: Owed[] = []
  for (const [topic, granted] of topicsOf(filters, session, retained)) {
    // A value that is still on its way into the store comes when it is stored.
    const value = retained.stored(topic)
    if (!value || !mayReceive(session.principal, topic)) continue
    const qos = lowerQos(granted, value.qos)
    const { position } = value
    const flight = session.inFlight.get(packetIdOf(position))
    const isInFlight = typeof flight === 'object' && flight.position === position
    if (qos === 0 || isInFlight) continue
    owed.push({ position, qos, retain: true, dup: false })
  }
  return owed.sort((a, b) => a.position - b.position)
}

/** The topics with a value that filters of a session match, with the highest QoS. */
function topicsOf(
  filters: ReadonlySet<string>,
  { subscriptions }: Session,
  retained: RetainedMessages,
): Map<string, Qos> {
  const topics = new Map<string, Qos>()
  for (const filter of filters) {
    const qos = subscriptions.get(filter)?.qos ?? 0
    if (qos === 0) continue
    for (const topic of retained.topics(filter)) if ((topics.get(topic) ?? 0) < qos) topics.set(topic, qos)
  }
  return topics
}
