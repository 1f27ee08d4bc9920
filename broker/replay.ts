import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Message } from '../event/message.ts'
import type { Change, Store } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { MqttConnection } from './connection.ts'
import type { Distribution, Sending } from './distribution.ts'
import type { Outbox } from './outbox.ts'
import type { Planned } from './queues.ts'
import type { RetainedMessages, RetainedValue } from './retained.ts'
import { inFlightWindow, type Session } from './session.ts'
import { sendRetained } from './unstored.ts'
import { lowerQos, type Publish, preparePublish, type Qos } from './wire.ts'

export type Replay = ReturnType<typeof createReplay>

/** So many are looked up and stored together; then everybody else gets a turn. */
const burst = 50

/**
 * Sends the retained messages of newly granted filters [MQTT-3.3.1-6], at the pace of the client. A value
 * is looked up when its turn comes, so that nothing older than a live message follows it.
 */
export function createReplay(parts: {
  store: Store
  retained: RetainedMessages
  outbox: Outbox
  mayReceive: (session: Session, topic: string) => boolean
  live: Pick<Distribution, 'sending' | 'sent'>
  log: Log
  metrics: Metrics
}) {
  const { store, retained, outbox, mayReceive, live, log, metrics } = parts
  /** Filters whose turn comes after the present ones: asking again and again piles nothing up. */
  const asked = new WeakMap<MqttConnection, Set<string>>()

  return {
    start(session: Session, filters: ReadonlySet<string>): void {
      const { connection } = session
      if (!connection || filters.size === 0) return
      const waiting = asked.get(connection)
      if (waiting) {
        for (const filter of filters) waiting.add(filter)
        return
      }
      asked.set(connection, new Set(filters))
      void run(session, connection)
    },
  }

  async function run(session: Session, connection: MqttConnection): Promise<void> {
    try {
      for (;;) {
        // What is being stored at the moment of the SUBACK is shown before it is looked for.
        await nextTurn()
        const filters = asked.get(connection)
        if (!filters || filters.size === 0 || session.connection !== connection) return
        asked.set(connection, new Set())
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
    filters: ReadonlySet<string>,
  ): Promise<void> {
    const matching = new Map<string, string[]>()
    for (const filter of filters) {
      for (const topic of retained.topics(filter))
        matching.set(topic, [...(matching.get(topic) ?? []), filter])
    }
    const due = [...matching].map(([topic, filters]) => ({ topic, filters }))
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
   * try, topics with a message that is just going out are put into `underway`.
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
      const granted = highest(filters.map((filter) => session.subscriptions.get(filter)))
      const value = retained.current(topic)
      if (granted === undefined || !value || !mayReceive(session, topic)) continue
      const qos = lowerQos(granted, value.qos)
      const isStored = !session.clean && qos > 0
      const obstacle = isStored ? undefined : obstacleTo(value, live.sending(topic), underway !== undefined)
      if (obstacle === 'underway') underway?.push(item)
      if (obstacle) continue
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
}

interface Due {
  topic: string
  /** The new filters that match it. */
  filters: string[]
}

function toMessage({ topic, payload, time, expires }: RetainedValue, qos: Qos): Message {
  return { topic, payload, qos, queue: { keep: 'every', time, ...(expires && { expires }) } }
}

/**
 * Why a retained value is not sent now: it is coming as a live message, or one that was going out before the client
 * subscribed may or may not reach it, and then behind the value. On the second try, all of them began later.
 */
function obstacleTo(
  { payload }: RetainedValue,
  sending: readonly Sending[],
  isFirstTry: boolean,
): 'coming' | 'underway' | undefined {
  const isForClient = ({ isStarted }: Sending) => !(isStarted && isFirstTry)
  if (sending.some((each) => isForClient(each) && each.payload.equals(payload))) return 'coming'
  return isFirstTry && sending.some(({ isStarted }) => isStarted) ? 'underway' : undefined
}

function highest(qos: readonly (Qos | undefined)[]): Qos | undefined {
  return qos.reduce((best, each) => (best === undefined || (each !== undefined && each > best) ? each : best))
}
