import type { Journal } from '../../journal/journal.ts'
import type { Returnable } from '../../journal/returnable.ts'
import type { Store } from '../../store/store.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { lowerQos } from '../connection/wire.ts'
import type { Denial, FilterRules } from '../filter-rules.ts'
import { type Asks, asksOf, choose } from './choice.ts'
import type { Owed } from './in-flight.ts'
import type { Outgoing } from './outgoing-qos2.ts'
import type { Progress } from './progress.ts'
import { createSession, maxOwed, packetIdOf, type Session } from './session.ts'
import { fromStored, incomingPrefix, type SessionRecord } from './session-record.ts'

/** Messages that are read from the journal at once. */
const pageSize = 200

export type Returning = ReturnType<typeof createReturning>

/** Brings a session back from its record: what its client is owed is chosen here, once, and stored with the log-in. */
export function createReturning(parts: {
  store: Store
  journal: Journal
  returnable: Returnable
  outgoing: Outgoing
  progress: Progress
  mayReceive: (session: Session, topic: string) => boolean
  rules: FilterRules
  queueLimit: number
  clock: () => number
  metrics: Metrics
}) {
  const { store, journal, returnable, outgoing, progress, mayReceive, rules, queueLimit, clock, metrics } =
    parts

  return {
    bringBack,

    /**
     * What a session that is away would get now: how many messages, how many of them may have been sent before, and how
     * many it has lost.
     */
    async waitingOf(record: SessionRecord): Promise<{ queued: number; inFlight: number; dropped: number }> {
      const session = createSession({ ...record, owner: undefined })
      await bringBack(session, record, true)
      const sent = session.backlog.filter(({ dup }) => dup).length + session.inFlight.size
      const queued = session.backlog.length + session.inFlight.size
      return { queued, inFlight: sent, dropped: session.dropped }
    },
  }

  /** Fills a session in from its record. `isTrial`: nothing is counted or reported. */
  async function bringBack(session: Session, record: SessionRecord, isTrial = false): Promise<void> {
    for await (const [key, value] of store.range(incomingPrefix(record.clientId))) {
      const packetId = Number(key.slice(incomingPrefix(record.clientId).length))
      if (value.toString() === String(record.createdAt)) session.incoming.add(packetId)
    }
    const sentQos2 = await outgoing.read(record.clientId, record.createdAt)
    session.hasSentQos2 = sentQos2.length > 0
    const latestHead = journal.head()
    const denials: Denial[] = []
    for (const [filter, qos, since] of record.subscriptions) {
      // A store that was restored from a backup may have lost positions.
      const subscription = { qos, since: Math.min(since, latestHead) }
      const reason = rules.denialOf(session, filter)
      if (reason === undefined) session.subscriptions.set(filter, subscription)
      else denials.push({ filter, reason })
    }
    if (!isTrial) rules.report(session, denials)
    const asks = asksOf(session.subscriptions)
    const may = (topic: string) => mayReceive(session, topic)
    const { upTo, owed, replay } = progress.placeOf(record)
    const owedBefore = withoutTwice([
      ...sentQos2,
      ...owed.map(fromStored).filter(({ position }) => position <= latestHead),
    ])
    const terms = { asks, mayReceive: may, now: clock(), limits: { waiting: queueLimit, owed: maxOwed } }
    const [from, to] = [Math.min(upTo, latestHead), Math.min(replay, latestHead)]
    const kept = withoutGap(
      session,
      { upTo: from, owed: owedBefore },
      Math.min(journal.floor() - 1, to),
      terms,
    )
    const again = await sentAgain(kept.upTo, to, asks, may, kept.owed)
    // With more than it may be owed, it reads on from there: nothing that may have been sent is left out.
    const isCut = again.upTo < to
    const since = isCut ? [] : returnable.since(again.upTo, session.subscriptions.keys())
    const chosen = choose(again, since, terms)
    const dropped = kept.dropped + chosen.dropped
    // After a crash all that it was owed may have been sent.
    const maybeSent = new Set(record.node === undefined ? [] : owedBefore.map(({ position }) => position))
    const all = inOrder(
      chosen.owed.map((each) => (maybeSent.has(each.position) ? { ...each, dup: true } : each)),
    )
    session.upTo = isCut ? again.upTo : journal.head()
    for (const each of all) if (each.released) session.inFlight.set(packetIdOf(each.position), each)
    session.backlog = all.filter(({ released }) => !released)
    session.dropped = record.dropped + dropped
    if (!isTrial) metrics.messagesDropped.inc({ reason: 'queue-limit' }, dropped)
  }

  /** Below the floor the journal has gaps: there it gets what a return without a crash brings, and may have had it. */
  function withoutGap(
    { subscriptions }: Session,
    place: { upTo: number; owed: Owed[] },
    floor: number,
    rules: Parameters<typeof choose>[2],
  ): { upTo: number; owed: Owed[]; dropped: number } {
    if (place.upTo >= floor) return { ...place, dropped: 0 }
    const known = new Set(place.owed)
    const { owed, dropped } = choose(place, returnable.since(place.upTo, subscriptions.keys(), floor), rules)
    return {
      upTo: floor,
      owed: owed.map((each) => (known.has(each) ? each : { ...each, dup: true })),
      dropped,
    }
  }

  /** What was accepted between two positions may have been sent: it goes out again, and nothing of it is left out. */
  async function sentAgain(
    from: number,
    to: number,
    asks: Asks,
    mayReceive: (topic: string) => boolean,
    before: readonly Owed[],
  ): Promise<{ upTo: number; owed: Owed[] }> {
    const owed = [...before]
    const known = new Set(before.map(({ position }) => position))
    let upTo = from
    while (upTo < to && owed.length < maxOwed) {
      const page = await journal.read(upTo, to, pageSize)
      for (const { position, topic, qos: highest } of page) {
        if (owed.length >= maxOwed) return { upTo, owed: inOrder(owed) }
        upTo = position
        const qos = lowerQos(asks(topic, position), highest)
        if (qos > 0 && !known.has(position) && mayReceive(topic))
          owed.push({ position, qos, retain: false, dup: true })
      }
      if (page.length < pageSize) upTo = to
    }
    return { upTo, owed: inOrder(owed) }
  }
}

/** Each position once: what comes first. */
function withoutTwice(owed: readonly Owed[]): Owed[] {
  const byPosition = new Map<number, Owed>()
  for (const each of owed) if (!byPosition.has(each.position)) byPosition.set(each.position, each)
  return inOrder([...byPosition.values()])
}

function inOrder(owed: Owed[]): Owed[] {
  return owed.sort((a, b) => a.position - b.position)
}
