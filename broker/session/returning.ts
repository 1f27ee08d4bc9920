import type { Principal } from '../../acl/principal.ts'
import type { Journal } from '../../journal/journal.ts'
import type { Returnable } from '../../journal/returnable.ts'
import type { Store } from '../../store/store.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { MqttConnection } from '../connection/connection.ts'
import type { Denial, FilterRules } from '../filter-rules.ts'
import type { Access } from '../login/access.ts'
import { createBacklogs } from './backlog.ts'
import { termsOf } from './choice.ts'
import type { Outgoing } from './outgoing-qos2.ts'
import type { Progress } from './progress.ts'
import type { ReturnTurns } from './return-turns.ts'
import { createSession, packetIdOf, receivingOf, type Session, type SessionBounds } from './session.ts'
import { fromStored, incomingPrefix, type SessionRecord } from './session-record.ts'
import { Waiting } from './waiting.ts'

export type Returning = ReturnType<typeof createReturning>

/** A client that logs in. */
export interface Login {
  clientId: string
  clean: boolean
  permission: string
  principal: Principal
  connection: MqttConnection
}

/** Numbers of messages above the limits, and of those that the journal no longer keeps; filters that are denied now. */
interface Losses {
  dropped: number
  superseded: number
  denials: Denial[]
}

/** Restores a session from its record, and chooses the messages to send. The log-in stores this choice. */
export function createReturning(parts: {
  store: Store
  journal: Journal
  returnable: Returnable
  outgoing: Outgoing
  progress: Progress
  turns: ReturnTurns
  mayReceive: Access['mayReceive']
  rules: FilterRules
  bounds: SessionBounds
  clock: () => number
  metrics: Metrics
}) {
  const { store, journal, outgoing, progress, turns, mayReceive, rules, bounds, clock, metrics } = parts
  const backlogs = createBacklogs(parts)

  return {
    /** Makes the session of a client that logs in. `left`: the client's entry in `storingIncoming` of `local-sessions.ts`. */
    open(login: Login, record: SessionRecord | undefined, left: Session | undefined): Session {
      const createdAt = record?.createdAt ?? clock()
      const receiving = record && left?.createdAt === createdAt ? left.receiving : undefined
      const session = createSession({ ...login, createdAt, receiving })
      // The place in the record must stay as it is until `bringBack` ends.
      session.upTo = record?.upTo ?? journal.head()
      session.backlog = new Waiting((record?.owed ?? []).map(fromStored))
      return session
    },

    /** Fills in a session from its record. Returns what the client loses by that. */
    bringBack: (session: Session, record: SessionRecord): Promise<Losses> =>
      fillIn(session, record, bounds.maxOwed),

    /** Counts and logs the losses of a session that is stored. */
    report(session: Session, { dropped, superseded, denials }: Losses): void {
      rules.report(session, denials)
      metrics.messagesDropped.inc({ reason: 'queue-limit' }, dropped)
      metrics.messagesDropped.inc({ reason: 'superseded' }, superseded)
    },

    /**
     * Counts the messages of a session whose client is away. `queued` includes `inFlight`, the messages that may have
     * been sent.
     */
    async waitingOf(record: SessionRecord): Promise<{ queued: number; inFlight: number; dropped: number }> {
      const session = createSession({ ...record, connection: undefined })
      await fillIn(session, record, Infinity)
      const { wanted } = await backlogs.stillWanted(
        session.backlog.list(),
        termsOf(session, mayReceive, clock()),
      )
      const sent = wanted.filter(({ dup }) => dup)
      const { size } = session.inFlight
      return { queued: size + wanted.length, inFlight: size + sent.length, dropped: session.dropped }
    },
  }

  /**
   * Fills in filters, messages and place. `mostAgain`: if the backlog has this many messages, further messages to
   * repeat stay in the journal.
   */
  async function fillIn(session: Session, record: SessionRecord, mostAgain: number): Promise<Losses> {
    await readIncoming(session)
    const sentQos2 = await outgoing.read(record.clientId, record.createdAt)
    // The turn comes after all reads before the choice: a slow store answers to many returns at once.
    await turns.enter('choice', record.clientId)
    session.hasSentQos2 = sentQos2.length > 0
    const latestHead = journal.head()
    const denials = grantAgain(session, record, latestHead)
    const place = progress.placeOf(record)
    const owed = [
      ...sentQos2,
      ...place.owed.map(fromStored).filter(({ position }) => position <= latestHead),
      // If the record names a node, that node may have sent these messages.
    ].map((each) => (record.node === undefined ? each : { ...each, dup: true }))
    const chosen = await backlogs.choose(
      session.subscriptions,
      { owed, upTo: Math.min(place.upTo, latestHead), replay: Math.min(place.replay, latestHead) },
      // The session must not find a sent QoS 2 message in the journal again.
      session.hasSentQos2 ? Infinity : mostAgain,
      termsOf(session, mayReceive, clock()),
    )
    const dropped = (place.lost ?? 0) + chosen.dropped
    session.upTo = chosen.upTo
    session.replay = chosen.replay
    for (const each of chosen.owed) if (each.released) session.inFlight.set(packetIdOf(each.position), each)
    session.backlog = new Waiting(chosen.owed.filter(({ released }) => !released))
    session.dropped = record.dropped + dropped + chosen.missing
    return { dropped, superseded: chosen.missing, denials }
  }

  async function readIncoming(session: Session): Promise<void> {
    const prefix = incomingPrefix(session.clientId)
    for await (const [key, value] of store.range(prefix)) {
      const [createdAt, digest = ''] = value.toString().split(' ')
      if (createdAt === String(session.createdAt))
        receivingOf(session).incoming.set(Number(key.slice(prefix.length)), digest)
    }
  }

  function grantAgain(session: Session, { subscriptions }: SessionRecord, latestHead: number): Denial[] {
    const denials: Denial[] = []
    for (const [filter, qos, since] of subscriptions) {
      // In a restored store, `since` may lie after the end of the journal.
      const subscription = { qos, since: Math.min(since, latestHead) }
      const reason = rules.denialOf(session, filter)
      if (reason === undefined) session.subscriptions.set(filter, subscription)
      else denials.push({ filter, reason })
    }
    return denials
  }
}
