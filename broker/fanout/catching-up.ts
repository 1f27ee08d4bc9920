import type { Journal } from '../../journal/journal.ts'
import type { Returnable } from '../../journal/returnable.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { MqttConnection } from '../connection/connection.ts'
import { lowerQos } from '../connection/frames.ts'
import type { Access } from '../login/access.ts'
import { asksOf, choose, isControlOver, isWanted, termsOf } from '../session/choice.ts'
import type { Owed } from '../session/in-flight.ts'
import type { Outgoing } from '../session/outgoing-qos2.ts'
import type { ReturnTurns } from '../session/return-turns.ts'
import type { Session, SessionBounds } from '../session/session.ts'
import { Waiting } from '../session/waiting.ts'
import type { Sendable, Sending } from './sending.ts'

/** Maximum number of messages that the node reads from the journal in one call. */
const pageSize = 50

export type CatchingUp = ReturnType<typeof createCatchingUp>

/**
 * Sends a persistent session its backlog, and then the journal after `upTo`. The client's acknowledgements set the
 * pace.
 */
export function createCatchingUp(parts: {
  journal: Journal
  returnable: Returnable
  outgoing: Outgoing
  sending: Sending
  turns: ReturnTurns
  mayReceive: Access['mayReceive']
  bounds: SessionBounds
  clock: () => number
  metrics: Metrics
}) {
  const { journal, returnable, outgoing, sending, turns, mayReceive, clock, metrics } = parts
  const { queueLimit, maxOwed, inFlightWindow } = parts.bounds
  return { read }

  /** Sends messages until `inFlightWindow` are in flight. `acknowledge` calls `read` again later. Never rejects. */
  async function read(session: Session): Promise<void> {
    const { connection } = session
    if (!connection || session.reading !== 'paused') return
    session.reading = 'catching up'
    try {
      while (connection.isOpen && session.connection === connection) {
        await connection.outgoing.paced()
        if (session.inFlight.size >= inFlightWindow || session.connection !== connection) return
        if (session.backlog.length === 0 && session.upTo >= journal.head()) {
          session.reading = 'live'
          return
        }
        const isGoing =
          session.backlog.length > 0
            ? await sendBacklog(session, connection)
            : await sendNext(session, connection)
        if (!isGoing) return
      }
    } finally {
      if (session.reading === 'catching up') session.reading = 'paused'
    }
  }

  /** Sends messages of the backlog. False: `read` must stop. */
  async function sendBacklog(session: Session, connection: MqttConnection): Promise<boolean> {
    const waiting = session.backlog.list(inFlightWindow - session.inFlight.size)
    const found = await sending.insist(session, connection, () =>
      messagesOf(session, waiting, journal, outgoing),
    )
    if (!found || session.connection !== connection) return false
    const terms = termsOf(session, mayReceive, clock())
    for (const [index, message] of found.result.entries()) {
      await connection.outgoing.paced()
      await turns.enter('message', session.clientId)
      const owed = waiting[index]
      // A SUBSCRIBE has changed the backlog meanwhile: `read` begins again with the changed backlog.
      if (!owed || session.backlog.first !== owed) return true
      if (message && isWanted(owed, message, { ...terms, now: clock() })) {
        if (!(await sending.send(session, connection, message, owed))) return false
      } else {
        if (!message) lose(session, 'superseded', 1)
        if (owed.stored) outgoing.remove(session, owed.position)
      }
      // During `send`, a SUBSCRIBE may have put another message first into the backlog. That message must stay.
      if (session.backlog.first === owed) session.backlog.shift()
    }
    return true
  }

  async function sendNext(session: Session, connection: MqttConnection): Promise<boolean> {
    const { replay } = session
    if (replay && session.upTo >= replay.upTo) {
      session.replay = undefined
      lose(session, 'queue-limit', chooseUpTo(session, replay.head))
      return true
    }
    const end = replay ? replay.upTo : journal.head()
    const found = await sending.insist(session, connection, () => journal.read(session.upTo, end, pageSize))
    if (!found || session.connection !== connection || session.backlog.length > 0) return found !== undefined
    // The journal lacks messages below its `floor`. Check after the read, because the floor may rise meanwhile.
    if (session.upTo + 1 < journal.floor()) {
      // Nobody can count the messages that the journal has removed. All of them together count as one lost message.
      lose(session, 'superseded', 1 + chooseUpTo(session, Math.min(journal.floor() - 1, end)))
      return true
    }
    const asks = asksOf(session.subscriptions)
    for (const entry of found.result.entries) {
      const { topic, position, queue } = entry
      // Asks after the wait, because an UNSUBSCRIBE may have ended a filter meanwhile [MQTT-3.10.4-2].
      await connection.outgoing.paced()
      await turns.enter('message', session.clientId)
      const qos = lowerQos(asks(topic, position), entry.qos)
      const owed: Owed = { position, qos, retain: false, dup: replay !== undefined }
      if (qos > 0 && !isControlOver(queue, clock()) && mayReceive(session.principal, topic)) {
        if (session.inFlight.size >= inFlightWindow) return false
        if (!(await sending.send(session, connection, entry, owed))) return false
      }
      session.upTo = Math.max(session.upTo, position)
    }
    session.upTo = Math.max(session.upTo, found.result.upTo)
    return true
  }

  /** Fills the backlog up to a position, as for a returning client. Returns the number of lost messages. */
  function chooseUpTo(session: Session, upTo: number): number {
    // A retained value in flight is no reason to leave the message itself out.
    const ordinary = [...session.inFlight.owed()].filter(({ retain }) => !retain)
    const inFlight = ordinary.map((owed) => ({ ...owed, dup: true }))
    const { replay } = session
    // `replay`: messages are sent again after a crash. They may have been in flight at the crash, so the queue limit
    // does not apply.
    const limits = { waiting: replay ? maxOwed : queueLimit, owed: maxOwed + inFlight.length }
    const { owed, dropped } = choose(
      { upTo: session.upTo, owed: inFlight },
      returnable.since(session.upTo, session.subscriptions.keys(), upTo),
      termsOf(session, mayReceive, clock()),
      limits,
    )
    const unsent = owed.filter(({ dup }) => !dup)
    session.backlog = new Waiting(replay ? unsent.map((each) => ({ ...each, dup: true })) : unsent)
    session.upTo = Math.max(session.upTo, upTo)
    return dropped
  }

  function lose(session: Session, reason: 'superseded' | 'queue-limit', count: number): void {
    session.dropped += count
    metrics.messagesDropped.inc({ reason }, count)
  }
}

/** Reads the first page of the waiting messages. An element is undefined if its message is no longer kept. */
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
