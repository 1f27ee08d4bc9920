import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Message } from '../../event/message.ts'
import { filterMatches } from '../../event/topic.ts'
import type { Change, Store } from '../../store/store.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { MqttConnection } from '../connection/connection.ts'
import { lowerQos, type Publish, preparePublish, type Qos } from '../connection/wire.ts'
import type { Outbox } from '../queue/outbox.ts'
import type { Planned } from '../queue/queues.ts'
import { inFlightWindow, type Session } from '../session/session.ts'
import type { Distribution } from './distribution.ts'
import type { Moments } from './moments.ts'
import type { RetainedMessages, RetainedValue } from './retained.ts'
import { sendRetained } from './unstored.ts'

export type Replay = ReturnType<typeof createReplay>

/** So many are looked up and stored together; then everybody else gets a turn. */
const burst = 50

/**
 * Sends the retained messages of newly granted filters [MQTT-3.3.1-6], at the pace of the client. A value
 * is looked up when its turn comes, so that nothing older than a live message follows it. What the client got live
 * since it subscribed does not come again.
 */
export function createReplay(parts: {
  store: Store
  retained: RetainedMessages
  outbox: Outbox
  mayReceive: (session: Session, topic: string) => boolean
  moments: Moments
  live: Pick<Distribution, 'sending' | 'sent'>
  log: Log
  metrics: Metrics
}) {
  const { store, retained, outbox, mayReceive, moments, live, log, metrics } = parts
  /** Filters whose turn comes after the present ones: asking again and again piles nothing up. */
  const asked = new WeakMap<MqttConnection, Map<string, Grant>>()
  /** Live messages that found no room. */
  const drops = new WeakMap<MqttConnection, number>()

  return {
    /** Filters are about to be granted: what goes out live from now on, the client gets. */
    granting: (session: Session): Grant => ({
      granted: moments.next(),
      stored: Infinity,
      lost: lostOf(session, session.connection),
    }),

    /** They are granted, and stored where that is due. */
    start(session: Session, filters: ReadonlySet<string>, { granted, lost }: Grant): void {
      const { connection } = session
      if (!connection || filters.size === 0) return
      const grant = { granted, stored: moments.next(), lost }
      const isRunning = asked.has(connection)
      const waiting = asked.get(connection) ?? new Map<string, Grant>()
      for (const filter of filters) waiting.set(filter, grant)
      asked.set(connection, waiting)
      if (!isRunning) void run(session, connection)
    },

    /** The connection had no room for a live message. */
    dropped: (connection: MqttConnection): void =>
      void drops.set(connection, (drops.get(connection) ?? 0) + 1),
  }

  async function run(session: Session, connection: MqttConnection): Promise<void> {
    try {
      for (;;) {
        // What is being stored at the moment of the SUBACK is shown before it is looked for.
        await nextTurn()
        const filters = asked.get(connection)
        if (!filters || filters.size === 0 || session.connection !== connection) return
        asked.set(connection, new Map())
        await sendAll(session, connection, filters)
      }
    } catch (error) {
      metrics.storeFailures.inc()
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
    const matching = new Map<string, Due>()
    for (const [filter, grant] of filters) {
      for (const topic of retained.topics(filter)) {
        const due = matching.get(topic) ?? { topic, filters: new Map() }
        due.filters.set(filter, grant)
        matching.set(topic, due)
      }
    }
    const due = [...matching.values()]
    const underway: Due[] = []
    await sendPaced(session, connection, due, underway)
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
      next += await send(session, connection, due.slice(next, next + burst), underway)
    }
  }

  /**
   * Sends the first of these, as many as the connection should take at once; returns how many that were. On the first
   * try, topics with a message that is just going out are put into `underway`: whether it reaches this client is
   * certain when it has gone out, and nothing older follows the value.
   */
  async function send(
    session: Session,
    connection: MqttConnection,
    due: readonly Due[],
    underway: Due[] | undefined,
  ): Promise<number> {
    const changes: Change[] = []
    const planned: [Planned, Publish][] = []
    let done = 0
    let bytes = 0
    for (const item of due) {
      if (bytes >= connection.outgoing.paceBytes) break
      done++
      const { topic, filters } = item
      // Filters given up meanwhile bring nothing more [MQTT-3.10.4-2].
      const granted = highest([...filters.keys()].map((filter) => session.subscriptions.get(filter)))
      const value = retained.current(topic)
      if (granted === undefined || !value || !mayReceive(session, topic)) continue
      const qos = lowerQos(granted, value.qos)
      const isStored = !session.clean && qos > 0
      if (!isStored) {
        const sending = live.sending(topic)
        if (underway && sending.length > 0) {
          underway.push(item)
          continue
        }
        // It has been published anew meanwhile.
        if (sending.some((payload) => payload.equals(value.payload))) continue
      }
      if (hasLive(session, connection, item, value, isStored)) continue
      const publish = preparePublish(topic, value.payload)
      bytes += value.payload.length
      metrics.deliveries.inc()
      if (!isStored) {
        sendRetained(session, publish, qos)
        continue
      }
      const message = toMessage(value, qos)
      const sequence = outbox.nextSequence()
      const taken = outbox.plan(session, message, sequence, qos, true)
      if (!taken) continue
      planned.push([taken.planned, publish])
      changes.push(...taken.changes, outbox.bodyChange(sequence, message))
    }
    try {
      await store.commit(changes)
    } catch (error) {
      outbox.revert(planned.map(([plan]) => plan))
      throw error
    }
    for (const [plan, publish] of planned) outbox.sendPlanned(plan, publish)
    return done
  }

  /** Whether each of the filters brought the value live, and nothing was lost since. */
  function hasLive(
    session: Session,
    connection: MqttConnection,
    { topic, filters }: Due,
    value: RetainedValue,
    isStored: boolean,
  ): boolean {
    const lost = lostOf(session, connection)
    const grants = [...filters.values()]
    if (grants.some((grant) => grant.lost !== lost)) return false
    const planned = grants.every((grant) => isPlanned(value, grant))
    if (isStored) return planned
    return grants.every((grant) => isSent(value, grant)) && (planned || !isQueued(session, topic, value))
  }

  function lostOf(session: Session, connection: MqttConnection | undefined): number {
    return session.dropped + ((connection && drops.get(connection)) ?? 0)
  }
}

/** Whether it comes by the queue, because of some filter of the session. */
function isQueued({ clean, subscriptions }: Session, topic: string, value: RetainedValue): boolean {
  if (clean || value.qos === 0) return false
  return [...subscriptions].some(([filter, qos]) => qos > 0 && filterMatches(filter, topic))
}

interface Due {
  topic: string
  /** The new filters that match it. */
  filters: Map<string, Grant>
}

/** How it is known what a client has got live since it subscribed: moments, and what was lost until then. */
interface Grant {
  granted: number
  stored: number
  lost: number
}

function toMessage({ topic, payload, time, expires }: RetainedValue, qos: Qos): Message {
  return { topic, payload, qos, queue: { keep: 'every', time, ...(expires && { expires }) } }
}

/**
 * Whether a persistent session has a value in its queue, or had. What this node plans goes there from the grant on,
 * what others plan from where the subscription is stored.
 */
function isPlanned({ live = {} }: RetainedValue, { granted, stored }: Grant): boolean {
  return (live.planned ?? 0) > granted || (live.heard ?? 0) > stored
}

function isSent({ live = {} }: RetainedValue, { granted }: Grant): boolean {
  return (live.sent ?? 0) > granted
}

function highest(qos: readonly (Qos | undefined)[]): Qos | undefined {
  return qos.reduce((best, each) => (best === undefined || (each !== undefined && each > best) ? each : best))
}
