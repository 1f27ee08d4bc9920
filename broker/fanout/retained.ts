import { setImmediate as nextTurn } from 'node:timers/promises'
import { isTemporary } from '../../acl/principal.ts'
import { filterMatches } from '../../event/topic.ts'
import type { RetainedMessages } from '../../journal/retained.ts'
import type { RetainedValue } from '../../journal/retained-value.ts'
import type { Audience } from '../../journal/retained-values.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { MqttConnection } from '../connection/connection.ts'
import { lowerQos, preparePublish } from '../connection/frames.ts'
import type { Qos } from '../connection/protocol.ts'
import type { Access } from '../login/access.ts'
import type { InFlight, Owed } from '../session/in-flight.ts'
import { defaultBounds, packetIdOf, type Session } from '../session/session.ts'
import { createSubscriptions } from '../session/subscriptions.ts'
import type { FanOut } from './fanout.ts'
import { unacknowledgedMs } from './sending.ts'
import { packetFor } from './writing.ts'

export type RetainedSending = ReturnType<typeof createRetainedSending>

/** Maximum number of retained values to look up in one turn of the event loop. */
const burst = 50
const { inFlightWindow } = defaultBounds
/**
 * The values that one turn sends, one behind the other. With buffers of their own, V8 would collect the whole heap every
 * few new subscribers. Its size is that of the most bytes a turn had: some more than the largest message.
 */
let together = Buffer.alloc(0)

/**
 * Sends clients the retained messages of newly granted filters [MQTT-3.3.1-6], at the pace of each client. Looks up
 * each value just before sending: an older value must never follow a newer live message (docs/decisions, "Retained
 * or live, not both"). A persistent session gets values above QoS 0 through its backlog (`owedFor`).
 */
export function createRetainedSending(parts: {
  retained: RetainedMessages
  mayReceive: Access['mayReceive']
  live: Pick<FanOut, 'sending' | 'sent' | 'bridges'>
  log: Log
  metrics: Metrics
}) {
  const { retained, mayReceive, live, log, metrics } = parts
  /** The filters whose values `run` sends next. In a map: a list would grow without end under repeated SUBSCRIBEs. */
  const asked = new WeakMap<MqttConnection, Map<string, Grant>>()
  const gotLive = createGotLive(retained)

  return {
    granting: gotLive.granting,
    dropped: gotLive.dropped,

    /** Returns the values above QoS 0 that newly granted filters bring to a persistent session. */
    owedFor: (session: Session, filters: ReadonlySet<string>): Owed[] =>
      retainedOwed(session, filters, parts),

    /** Sends the retained messages of granted filters. For a persistent session, the filters must be stored first. */
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
        // In the next turn, values whose commit was under way at the SUBACK can be found.
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
    const asking = filtersOf(filters)
    const underway: string[] = []
    await sendPaced(session, connection, asking, dueOf(session, filters.keys(), retained), underway)
    if (underway.length > 0) {
      await live.sent(audienceOf(session))
      await sendPaced(session, connection, asking, underway, undefined)
    }
    if (session.isBridge) await sendEnded(session, connection, filters.keys())
  }

  /** Sends a bridge an empty message for each topic that has lost its value. The bridge may still have the value. */
  async function sendEnded(
    session: Session,
    connection: MqttConnection,
    filters: Iterable<string>,
  ): Promise<void> {
    const ended = new Set([...filters].flatMap(retained.ended))
    for (const [nth, topic] of [...ended].entries()) {
      if (nth % burst === 0) await nextTurn()
      await connection.outgoing.paced()
      if (session.connection !== connection || !connection.isOpen) return
      live.bridges.send(session, topic)
    }
  }

  async function sendPaced(
    session: Session,
    connection: MqttConnection,
    asking: NewFilters,
    due: readonly string[],
    underway: string[] | undefined,
  ): Promise<void> {
    for (let next = 0; next < due.length; ) {
      await nextTurn()
      await connection.outgoing.paced()
      // Here, values above QoS 0 go to clean sessions only.
      if (session.clean) await roomInFlight(session.inFlight, connection)
      if (session.connection !== connection || !connection.isOpen) return
      next += send(session, connection, asking, due.slice(next, next + burst), underway)
    }
  }

  /**
   * Sends values in the order of `due`, until their bytes reach the connection's pace. Returns how many topics are
   * done. If a live message of a topic is on its way, the client may get that message or not. The first pass then only
   * adds the topic to `underway`. The second pass, without `underway`, sends the values of these topics.
   */
  function send(
    session: Session,
    connection: MqttConnection,
    asking: NewFilters,
    due: readonly string[],
    underway: string[] | undefined,
  ): number {
    let done = 0
    let count = 0
    let bytes = 0
    const allocate = (length: number): Buffer => {
      if (together.length < bytes + length) together = Buffer.concat([together, Buffer.alloc(length)])
      return together.subarray(bytes, bytes + length)
    }
    for (const topic of due) {
      if (bytes >= connection.outgoing.paceBytes) break
      done++
      const filters = asking(topic)
      const granted = grantedNow(session, filters)
      const value = retained.current(topic)
      if (granted === undefined || !value || !mayReceive(session.principal, topic)) continue
      const qos = lowerQos(granted, value.qos)
      if (!session.clean && qos > 0) continue // it comes from the backlog: see `owedFor`
      const sending = live.sending(topic, audienceOf(session))
      if (underway && sending.length > 0) {
        underway.push(topic)
        continue
      }
      // True only in the second pass: the value was published after the first pass looked at the topic, and this node
      // is still sending it live.
      if (sending.includes(value.position)) continue
      if (gotLive.has(session, connection, filters, value)) continue
      count++
      bytes += packetFor(session, preparePublish(value, allocate), qos, fromRetained)?.length ?? 0
    }
    metrics.deliveries.inc(count)
    // One write, and one TLS record: many small ones take longer than the values themselves.
    if (bytes > 0) connection.outgoing.write(together.subarray(0, bytes), true)
    return done
  }
}

/** Waits until the client has acknowledged enough, or is cut off. */
async function roomInFlight(inFlight: InFlight, connection: MqttConnection): Promise<void> {
  const cut = () => connection.cut('slow', `no message acknowledged for ${unacknowledgedMs} ms`)
  while (inFlight.size > inFlightWindow - burst && connection.isOpen) {
    await inFlight.fallsTo(inFlightWindow - burst, unacknowledgedMs, cut)
  }
}

/**
 * Returns the topics whose values must be sent. Leaves out topics that `owedFor` covers. Returns topics, because their
 * values would fill the memory while a client does not read.
 */
function dueOf(session: Session, filters: Iterable<string>, retained: RetainedMessages): string[] {
  const due = new Set<string>()
  for (const filter of filters) {
    const isOwed = !session.clean && session.subscriptions.get(filter)?.qos !== 0
    for (const topic of retained.topics(filter)) {
      if (!isOwed || retained.current(topic)?.qos === 0) due.add(topic)
    }
  }
  return [...due]
}

/** The highest QoS that these filters grant. Undefined: all of them were unsubscribed meanwhile [MQTT-3.10.4-2]. */
function grantedNow(session: Session, filters: readonly NewFilter[]): Qos | undefined {
  return filters
    .map(({ filter }) => session.subscriptions.get(filter)?.qos)
    .reduce((best, each) => (best === undefined || (each !== undefined && each > best) ? each : best))
}

/** `granted`: the moment at which filters were granted. `lost`: how many messages the client had lost until then. */
interface Grant {
  granted: number
  lost: number
}

interface NewFilter extends Grant {
  filter: string
}

/** The new filters that match a topic of `dueOf`. */
type NewFilters = (topic: string) => readonly NewFilter[]

function filtersOf(grants: ReadonlyMap<string, Grant>): NewFilters {
  const all = [...grants].map(([filter, grant]) => ({ filter, ...grant }))
  // One filter, as nearly always, matches each topic that is due because of it.
  if (all.length === 1) return () => all
  const tree = createSubscriptions<NewFilter>()
  for (const each of all) tree.add(each.filter, each, 0)
  return (topic) => [...tree.match(topic).keys()]
}

/** Finds out which retained values a client has got live since it subscribed. */
function createGotLive(retained: RetainedMessages) {
  /** Number of live messages that did not fit into the outgoing buffer, by connection. */
  const drops = new WeakMap<MqttConnection, number>()

  return {
    /** The moment before filters are granted: the client gets later values live. */
    granting: (session: Session): Grant => ({
      granted: retained.moment(),
      lost: lostOf(session, session.connection),
    }),

    /** Notes that a connection has dropped a live message. */
    dropped: (connection: MqttConnection): void =>
      void drops.set(connection, (drops.get(connection) ?? 0) + 1),

    /**
     * Whether the client got the value live after all these filters had been granted. False if the client has lost a
     * message since one of the grants. The lost message may have been this value.
     */
    has(
      session: Session,
      connection: MqttConnection,
      filters: readonly NewFilter[],
      value: RetainedValue,
    ): boolean {
      const lost = lostOf(session, connection)
      if (filters.some((each) => each.lost !== lost)) return false
      if (!isRead(session, value)) {
        const sent = audienceOf(session) === 'pages' ? value.sentToPages : value.sent
        return filters.every(({ granted }) => (sent ?? 0) > granted)
      }
      return filters.every(
        ({ filter }) => value.position > (session.subscriptions.get(filter)?.since ?? Infinity),
      )
    },
  }

  function lostOf(session: Session, connection: MqttConnection | undefined): number {
    return session.dropped + ((connection && drops.get(connection)) ?? 0)
  }
}

/** Whether the session gets the message with this value from the journal. */
function isRead({ clean, subscriptions }: Session, { topic, qos }: RetainedValue): boolean {
  if (clean || qos === 0) return false
  return [...subscriptions].some(([filter, granted]) => granted.qos > 0 && filterMatches(filter, topic))
}

function audienceOf({ principal }: Session): Audience {
  return isTemporary(principal) ? 'pages' : 'others'
}

function retainedOwed(
  session: Session,
  filters: ReadonlySet<string>,
  { retained, mayReceive }: { retained: RetainedMessages; mayReceive: Access['mayReceive'] },
): Owed[] {
  const owed: Owed[] = []
  for (const [topic, granted] of topicsOf(filters, session, retained)) {
    // `stored` leaves out a value whose commit is under way: this value comes live.
    const value = retained.stored(topic)
    if (!value || !mayReceive(session.principal, topic)) continue
    const qos = lowerQos(granted, value.qos)
    const { position } = value
    const flight = session.inFlight.get(packetIdOf(position))
    const isInFlight = typeof flight === 'object' && flight.position === position
    if (qos === 0 || isInFlight) continue
    owed.push({ position, qos, retain: true, dup: false, topic })
  }
  return owed.sort((a, b) => a.position - b.position)
}

/** The topics of retained values that match filters above QoS 0, each with the highest QoS of its filters. */
function topicsOf(
  filters: ReadonlySet<string>,
  { subscriptions }: Session,
  retained: RetainedMessages,
): Iterable<[topic: string, qos: Qos]> {
  const granted = [...filters].map((filter) => [filter, subscriptions.get(filter)?.qos ?? 0] as const)
  const [only, ...others] = granted.filter(([, qos]) => qos > 0)
  if (!only) return []
  // No topic matches twice. A map of 100,000 topics would take 20 ms.
  if (others.length === 0) return retained.topics(only[0]).map((topic) => [topic, only[1]])
  const topics = new Map<string, Qos>()
  for (const [filter, qos] of [only, ...others]) {
    for (const topic of retained.topics(filter)) if ((topics.get(topic) ?? 0) < qos) topics.set(topic, qos)
  }
  return topics
}

const fromRetained = { retain: true }
