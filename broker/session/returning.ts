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
import { createSession, packetIdOf, type Session, type SessionBounds } from './session.ts'
import { fromStored, incomingPrefix, type SessionRecord } from './session-record.ts'

export type Returning = ReturnType<typeof createReturning>

/** A client that logs in. */
interface Login {
  clientId: string
  clean: boolean
  permission: string
  principal: Principal
  owner: MqttConnection
}

/**
 * Restores a session from its record, and chooses the messages that the session gets. The log-in stores this choice, so
 * the hub chooses only once.
 */
export function createReturning(parts: {
  store: Store
  journal: Journal
  returnable: Returnable
  outgoing: Outgoing
  progress: Progress
  mayReceive: Access['mayReceive']
  rules: FilterRules
  bounds: SessionBounds
  clock: () => number
  metrics: Metrics
}) {
  const { store, journal, outgoing, progress, mayReceive, rules, bounds, clock, metrics } = parts
  const backlogs = createBacklogs(parts)

  return {
    /**
     * Makes the session of a client that logs in. `left`: the session object of its last connection to this node, if
     * the node is still storing QoS 2 messages that the client published on that connection.
     */
    open(login: Login, record: SessionRecord | undefined, left: Session | undefined): Session {
      const createdAt = record?.createdAt ?? clock()
      const receiving = record && left?.createdAt === createdAt ? left : undefined
      const session = createSession({ ...login, createdAt, receiving })
      // If this node stores the progress before `bringBack` has ended, it must store the place from the record.
      session.upTo = record?.upTo ?? journal.head()
      session.backlog = (record?.owed ?? []).map(fromStored)
      return session
    },

    /**
     * Fills in a session from its record. Returns a function that counts lost messages and reports denied filters: call
     * it after the commit.
     */
    async bringBack(session: Session, record: SessionRecord): Promise<() => void> {
      const { dropped, superseded, denials } = await fillIn(session, record, bounds.maxOwed)
      return () => {
        rules.report(session, denials)
        metrics.messagesDropped.inc({ reason: 'queue-limit' }, dropped)
        metrics.messagesDropped.inc({ reason: 'superseded' }, superseded)
      }
    },

    /**
     * Counts messages of a session whose client is away. `queued`: messages that the client would get now. `inFlight`:
     * how many of these may have been sent before. `dropped`: lost messages.
     */
    async waitingOf(record: SessionRecord): Promise<{ queued: number; inFlight: number; dropped: number }> {
      const session = createSession({ ...record, owner: undefined })
      await fillIn(session, record, Infinity)
      const { wanted } = await backlogs.stillWanted(session.backlog, termsOf(session, mayReceive, clock()))
      const sent = wanted.filter(({ dup }) => dup)
      const { size } = session.inFlight
      return { queued: size + wanted.length, inFlight: size + sent.length, dropped: session.dropped }
    },
  }

  /**
   * Fills in filters, messages and place. `mostAgain`: after a crash, messages to repeat go into the backlog until the
   * backlog has this length. The session reads the others from the journal later.
   */
  async function fillIn(
    session: Session,
    record: SessionRecord,
    mostAgain: number,
  ): Promise<{ dropped: number; superseded: number; denials: Denial[] }> {
    await readIncoming(session)
    const sentQos2 = await outgoing.read(record.clientId, record.createdAt)
    session.hasSentQos2 = sentQos2.length > 0
    const latestHead = journal.head()
    const denials = grantAgain(session, record, latestHead)
    const place = progress.placeOf(record)
    const owed = [
      ...sentQos2,
      ...place.owed.map(fromStored).filter(({ position }) => position <= latestHead),
      // A record that names a node is left by a crash: that node may have sent any of these messages.
    ].map((each) => (record.node === undefined ? each : { ...each, dup: true }))
    const chosen = await backlogs.choose(
      session.subscriptions,
      { owed, upTo: Math.min(place.upTo, latestHead), replay: Math.min(place.replay, latestHead) },
      // If QoS 2 messages were sent, all messages to repeat go into the backlog. If the session found such a message in
      // the journal later, the node would send it as a new one.
      session.hasSentQos2 ? Infinity : mostAgain,
      termsOf(session, mayReceive, clock()),
    )
    const dropped = (place.lost ?? 0) + chosen.dropped
    session.upTo = chosen.upTo
    session.replay = chosen.replay
    for (const each of chosen.owed) if (each.released) session.inFlight.set(packetIdOf(each.position), each)
    session.backlog = chosen.owed.filter(({ released }) => !released)
    session.dropped = record.dropped + dropped + chosen.missing
    return { dropped, superseded: chosen.missing, denials }
  }

  /** Reads the packet identifiers of the QoS 2 messages that the client has published, and not released by PUBREL. */
  async function readIncoming({ clientId, createdAt, incoming }: Session): Promise<void> {
    const prefix = incomingPrefix(clientId)
    for await (const [key, value] of store.range(prefix)) {
      if (value.toString() === String(createdAt)) incoming.add(Number(key.slice(prefix.length)))
    }
  }

  /** Grants the filters of the record again. Returns the filters that the session may no longer have. */
  function grantAgain(session: Session, { subscriptions }: SessionRecord, latestHead: number): Denial[] {
    const denials: Denial[] = []
    for (const [filter, qos, since] of subscriptions) {
      // If the store was restored from a backup, `since` may be a position after the end of the journal.
      const subscription = { qos, since: Math.min(since, latestHead) }
      const reason = rules.denialOf(session, filter)
      if (reason === undefined) session.subscriptions.set(filter, subscription)
      else denials.push({ filter, reason })
    }
    return denials
  }
}
