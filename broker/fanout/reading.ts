import type { Entry } from '../../journal/entry.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { lowerQos, type Publish } from '../connection/frames.ts'
import { encodePubrel } from '../connection/packets.ts'
import { onePerPosition, withinLimits } from '../session/choice.ts'
import type { Owed } from '../session/in-flight.ts'
import { packetIdOf, type Session, type SessionBounds } from '../session/session.ts'
import type { Recipient } from '../session/subscriptions.ts'
import { Waiting } from '../session/waiting.ts'
import type { CatchingUp } from './catching-up.ts'
import type { Sending } from './sending.ts'

export type Reading = ReturnType<typeof createSessionReading>

/**
 * Brings the messages of the journal to connected persistent sessions. A session that keeps up gets messages from
 * memory, any other reads the journal.
 */
export function createSessionReading(parts: {
  /** The end of the journal. */
  head: number
  sending: Sending
  catchingUp: CatchingUp
  bounds: Pick<SessionBounds, 'maxOwed'>
  metrics: Metrics
}) {
  const { metrics } = parts
  const { fits, hasRoom, write } = parts.sending
  const { read } = parts.catchingUp
  const { maxOwed } = parts.bounds
  /** The live sessions have got all messages up to this position. */
  let deliveredUpTo = parts.head

  return {
    /** Sends a message to the live recipients, and returns their number. The others read the journal. */
    deliver(entry: Entry, publish: Publish, recipients: Iterable<Recipient>): number {
      deliveredUpTo = Math.max(deliveredUpTo, entry.position)
      if (entry.qos === 0) return 0
      let count = 0
      // One object for all recipients, to save memory.
      const owed: Owed = { position: entry.position, qos: 1, retain: false, dup: false }
      for (const [session, granted] of recipients) {
        if (session.reading !== 'live' || entry.position <= session.upTo) continue
        const isDelivered =
          lowerQos(granted, entry.qos) === 1 &&
          fits(session, owed) &&
          // Without room, the session reads the message later: one large event for many livestreams fills a buffer.
          hasRoom(session, publish, owed.qos) &&
          write(session, publish, owed, entry.topic)
        if (isDelivered) count++
        else fallBehind(session, entry.position - 1)
      }
      if (count > 0) metrics.deliveries.inc(count)
      return count
    },

    /** The position up to which the sessions that keep up have all messages. */
    deliveredUpTo: (): number => deliveredUpTo,
    upToOf: placeNow,

    /** Repeats PUBREL for released messages, then sends waiting messages. */
    begin(session: Session): void {
      for (const { position, released } of session.inFlight.owed()) {
        if (released) session.connection?.send(encodePubrel(packetIdOf(position)))
      }
      void read(session)
    },

    /**
     * Adds retained values for new filters to the backlog. A new value replaces an older one of the same topic that
     * waits because of an earlier SUBSCRIBE. Otherwise repeated SUBSCRIBEs could fill the backlog without end.
     *
     * A message that waits as an ordinary one stays: the client gets it, and then the retained value, under the same
     * identifier. A message that may be in flight is not added a second time.
     */
    owe(session: Session, owed: readonly Owed[]): void {
      session.backlog = new Waiting(
        session.backlog.length === 0 ? owed : joined(session.backlog.list(), owed),
      )
      // `upTo` never moves back for new filters, because they match only messages after their `since`.
      fallBehind(session, placeNow(session))
    },

    /** Ends the reading of a persistent session: notes how far it has got, and drops owed messages above the limit. */
    end(session: Session): void {
      session.upTo = placeNow(session)
      session.reading = 'paused'
      const limits = { waiting: maxOwed, owed: Math.max(0, maxOwed - session.inFlight.size) }
      const { owed, dropped } = withinLimits(onePerPosition(session.backlog.list()), limits)
      session.backlog = new Waiting(owed)
      if (dropped === 0) return
      session.dropped += dropped
      metrics.messagesDropped.inc({ reason: 'queue-limit' }, dropped)
    },

    /**
     * How far a session has got, without messages in flight that the store has separately (QoS 2). `lost`: the number of
     * owed messages above `most`.
     */
    placeOf(session: Session, most: number): { upTo: number; owed: Owed[]; lost: number } {
      const inFlight = [...session.inFlight.owed()].filter(({ stored }) => !stored).slice(0, most)
      const waiting = session.backlog.list(most - inFlight.length)
      const all = [...inFlight.map((owed) => ({ ...owed, dup: true })), ...waiting]
      return {
        upTo: placeNow(session),
        // Every second, this runs for all sessions that are behind: most of them wait for no retained value.
        owed: all.some(({ retain }) => retain) ? onePerPosition(all) : all,
        lost: session.backlog.length - waiting.length,
      }
    },
  }

  function placeNow({ reading, upTo }: Session): number {
    return reading === 'live' ? Math.max(upTo, deliveredUpTo) : upTo
  }

  function fallBehind(session: Session, upTo: number): void {
    if (session.reading === 'live') session.reading = 'paused'
    session.upTo = upTo
    void read(session)
  }
}

/** Joins the messages that wait with the retained values for new filters, see `owe`. */
function joined(waiting: readonly Owed[], owed: readonly Owed[]): Owed[] {
  const newest = new Map(owed.map(({ topic, position }) => [topic, position]))
  const isReplaced = ({ topic, position }: Owed) =>
    topic !== undefined && (newest.get(topic) ?? position) !== position
  const kept = waiting.filter((each) => !isReplaced(each))
  const enough = new Set(kept.filter(({ retain, dup }) => retain || dup).map(({ position }) => position))
  return [...kept, ...owed.filter(({ position }) => !enough.has(position))]
}
