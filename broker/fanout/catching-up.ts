import type { Journal } from '../../journal/journal.ts'
import type { Returnable } from '../../journal/returnable.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { MqttConnection } from '../connection/connection.ts'
import { lowerQos } from '../connection/wire.ts'
import type { Access } from '../login/access.ts'
import { asksOf, choose, isControlOver, isWanted, termsOf } from '../session/choice.ts'
import type { Owed } from '../session/in-flight.ts'
import type { Outgoing } from '../session/outgoing-qos2.ts'
import type { Session, SessionBounds } from '../session/session.ts'
import type { Sendable, Sending } from './sending.ts'

/** Messages that are read from the journal at once. */
const pageSize = 50

export type CatchingUp = ReturnType<typeof createCatchingUp>

/** Sends a connected persistent session its backlog, then the journal from its place on, as fast as it acknowledges. */
export function createCatchingUp(parts: {
  journal: Journal
  returnable: Returnable
  outgoing: Outgoing
  sending: Sending
  mayReceive: Access['mayReceive']
  bounds: SessionBounds
  clock: () => number
  metrics: Metrics
}) {
  const { journal, returnable, outgoing, sending, mayReceive, clock, metrics } = parts
  const { queueLimit, maxOwed, inFlightWindow } = parts.bounds
  return { read }

  /** Sends waiting messages until the window or the network is full. Each acknowledgement calls it again. Never rejects. */
  async function read(session: Session): Promise<void> {
    const { connection } = session
    if (!connection || session.isLive || session.reading) return
    const run = {}
    session.reading = run
    try {
      while (connection.isOpen && session.connection === connection) {
        await connection.paced()
        if (session.inFlight.size >= inFlightWindow || session.connection !== connection) return
        // Nothing is awaited between this check and the return: the next message is either read or delivered live.
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

  /** Sends messages of the backlog. False: stop for now, because an acknowledgement calls `read` again. */
  async function sendBacklog(session: Session, connection: MqttConnection): Promise<boolean> {
    const waiting = session.backlog.slice(0, inFlightWindow - session.inFlight.size)
    const found = await sending.insist(session, connection, () =>
      messagesOf(session, waiting, journal, outgoing),
    )
    if (!found || session.connection !== connection) return false
    const terms = termsOf(session, mayReceive, clock())
    for (const [index, message] of found.result.entries()) {
      await connection.paced()
      const owed = waiting[index]
      // A SUBSCRIBE has changed the backlog meanwhile.
      if (!owed || session.backlog[0] !== owed) return true
      if (message && isWanted(owed, message, { ...terms, now: clock() })) {
        if (!(await sending.send(session, connection, message, owed))) return false
      } else {
        if (!message) lose(session, 'superseded', 1)
        if (owed.stored) outgoing.finished(session, owed.position)
      }
      session.backlog.shift()
    }
    return true
  }

  async function sendNext(session: Session, connection: MqttConnection): Promise<boolean> {
    const { again } = session
    if (again && session.upTo >= again.upTo) {
      session.again = undefined
      lose(session, 'queue-limit', returnTo(session, again.head))
      return true
    }
    const end = again ? again.upTo : journal.head()
    const found = await sending.insist(session, connection, () => journal.read(session.upTo, end, pageSize))
    if (!found || session.connection !== connection || session.backlog.length > 0) return found !== undefined
    // The floor is checked after the read, because it may have risen meanwhile.
    if (session.upTo + 1 < journal.floor()) {
      // Messages that are no longer there cannot be counted: they count as one.
      lose(session, 'superseded', 1 + returnTo(session, Math.min(journal.floor() - 1, end)))
      return true
    }
    const asks = asksOf(session.subscriptions)
    for (const entry of found.result.entries) {
      const { topic, position, queue } = entry
      const qos = lowerQos(asks(topic, position), entry.qos)
      const owed: Owed = { position, qos, retain: false, dup: again !== undefined }
      if (qos > 0 && !isControlOver(queue, clock()) && mayReceive(session.principal, topic)) {
        if (session.inFlight.size >= inFlightWindow) return false
        await connection.paced()
        if (!(await sending.send(session, connection, entry, owed))) return false
      }
      session.upTo = Math.max(session.upTo, position)
    }
    session.upTo = Math.max(session.upTo, found.result.upTo)
    return true
  }

  /** Chooses messages up to a position as for a session that returns. Returns how many the session has lost. */
  function returnTo(session: Session, upTo: number): number {
    const inFlight = [...session.inFlight.owed()].map((owed) => ({ ...owed, dup: true }))
    const { again } = session
    // After a crash the queue limit does not count: some of these messages may be in flight.
    const limits = { waiting: again ? maxOwed : queueLimit, owed: maxOwed + inFlight.length }
    const { owed, dropped } = choose(
      { upTo: session.upTo, owed: inFlight },
      returnable.since(session.upTo, session.subscriptions.keys(), upTo),
      termsOf(session, mayReceive, clock()),
      limits,
    )
    session.backlog = owed.filter(({ dup }) => !dup).map((each) => (again ? { ...each, dup: true } : each))
    session.upTo = Math.max(session.upTo, upTo)
    return dropped
  }

  function lose(session: Session, reason: 'superseded' | 'queue-limit', count: number): void {
    session.dropped += count
    metrics.messagesDropped.inc({ reason }, count)
  }
}

/** The first waiting messages, as many as make a page; undefined for a message that is no longer kept. */
async function messagesOf(
  session: Session,
  waiting: readonly Owed[],
  journal: Journal,
  outgoing: Outgoing,
): Promise<(Sendable | undefined)[]> {
  const found = await journal.getFirst(waiting.map(({ position }) => position))
  return Promise.all(
    found.map((entry, index) => {
      const { stored, position } = waiting[index] ?? {}
      return entry ?? (stored && position !== undefined ? outgoing.get(session, position) : undefined)
    }),
  )
}
