import type { Journal } from '../../journal/journal.ts'
import type { Returnable } from '../../journal/returnable.ts'
import type { Store } from '../../store/store.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { lowerQos } from '../connection/wire.ts'
import type { Denial, FilterRules } from '../filter-rules.ts'
import { asksOf, choose, isWanted } from './choice.ts'
import type { Owed } from './in-flight.ts'
import type { Outgoing } from './outgoing-qos2.ts'
import type { Progress } from './progress.ts'
import { createSession, maxOwed, packetIdOf, type Session } from './session.ts'
import { fromStored, incomingPrefix, type SessionRecord } from './session-record.ts'

/** Messages that are read from the journal at once. */
const pageSize = 200

type Terms = Parameters<typeof choose>[2]

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
    /** Fills a session in from its record. Returns what to do once its log-in is stored: count and report what is lost. */
    async bringBack(session: Session, record: SessionRecord): Promise<() => void> {
      const { dropped, denials } = await fillIn(session, record, maxOwed)
      return () => {
        rules.report(session, denials)
        metrics.messagesDropped.inc({ reason: 'queue-limit' }, dropped)
      }
    },

    /**
     * What a session that is away would get now: how many messages, how many of them may have been sent before, and how
     * many it has lost.
     */
    async waitingOf(record: SessionRecord): Promise<{ queued: number; inFlight: number; dropped: number }> {
      const session = createSession({ ...record, owner: undefined })
      await fillIn(session, record, Infinity)
      const { backlog } = session
      const terms = { ...termsOf(session), now: clock() }
      let queued = session.inFlight.size
      let inFlight = queued
      for (let from = 0; from < backlog.length; ) {
        const page = await journal.getFirst(backlog.slice(from).map(({ position }) => position))
        for (const [index, entry] of page.entries()) {
          const owed = backlog[from + index]
          if (!owed || !(entry ? isWanted(owed, entry, terms) : owed.stored)) continue
          queued++
          if (owed.dup) inFlight++
        }
        from += page.length
      }
      return { queued, inFlight, dropped: session.dropped }
    },
  }

  /** `mostAgain`: as much as goes out again after a crash may be in the backlog. The rest is read later. */
  async function fillIn(
    session: Session,
    record: SessionRecord,
    mostAgain: number,
  ): Promise<{ dropped: number; denials: Denial[] }> {
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
    const { upTo, owed, lost = 0, replay } = progress.placeOf(record)
    const owedBefore = withoutTwice([
      ...sentQos2,
      ...owed.map(fromStored).filter(({ position }) => position <= latestHead),
      // After a crash all that it was owed may have been sent.
    ]).map((each) => (record.node === undefined ? each : { ...each, dup: true }))
    const limits = { waiting: queueLimit, owed: maxOwed }
    const terms = { ...termsOf(session), now: clock(), limits }
    const [from, to] = [Math.min(upTo, latestHead), Math.min(replay, latestHead)]
    const kept = withoutGap(
      session,
      { upTo: from, owed: owedBefore },
      Math.min(journal.floor() - 1, to),
      terms,
    )
    const again = await sentAgain(kept, to, terms, mostAgain)
    // With more than it may be owed, it reads on from there: nothing that may have been sent is left out.
    const isCut = again.upTo < to
    const since = isCut ? [] : returnable.since(again.upTo, session.subscriptions.keys())
    // What goes out again leaves room for the rest where it is read later.
    const room = again.owed.length > maxOwed ? again.owed.length + maxOwed : maxOwed
    const chosen = choose(again, since, { ...terms, limits: { ...limits, owed: room } })
    const dropped = lost + kept.dropped + chosen.dropped
    const all = inOrder(chosen.owed)
    session.upTo = isCut ? again.upTo : journal.head()
    session.again = isCut ? { upTo: to, head: journal.head() } : undefined
    for (const each of all) if (each.released) session.inFlight.set(packetIdOf(each.position), each)
    session.backlog = all.filter(({ released }) => !released)
    session.dropped = record.dropped + dropped
    return { dropped, denials }
  }

  function termsOf(session: Session): Pick<Terms, 'asks' | 'mayReceive'> {
    return { asks: asksOf(session.subscriptions), mayReceive: (topic) => mayReceive(session, topic) }
  }

  /** Below the floor messages are missing: up to there it gets what a return without a crash brings, with DUP. */
  function withoutGap(
    { subscriptions }: Session,
    place: { upTo: number; owed: Owed[] },
    floor: number,
    terms: Terms,
  ): { upTo: number; owed: Owed[]; dropped: number } {
    if (place.upTo >= floor) return { ...place, dropped: 0 }
    const known = new Set(place.owed)
    const { owed, dropped } = choose(place, returnable.since(place.upTo, subscriptions.keys(), floor), terms)
    return {
      upTo: floor,
      owed: owed.map((each) => (known.has(each) ? each : { ...each, dup: true })),
      dropped,
    }
  }

  /** What was accepted between two positions may have been sent: it goes out again, and nothing of it is left out. */
  async function sentAgain(
    before: { upTo: number; owed: readonly Owed[] },
    to: number,
    { asks, mayReceive }: Terms,
    most: number,
  ): Promise<{ upTo: number; owed: Owed[] }> {
    const owed = [...before.owed]
    const known = new Set(owed.map(({ position }) => position))
    let { upTo } = before
    while (upTo < to && owed.length < most) {
      const page = await journal.read(upTo, to, pageSize)
      for (const { position, topic, qos: highest } of page.entries) {
        if (owed.length >= most) return { upTo, owed: inOrder(owed) }
        upTo = position
        const qos = lowerQos(asks(topic, position), highest)
        if (qos > 0 && !known.has(position) && mayReceive(topic))
          owed.push({ position, qos, retain: false, dup: true })
      }
      upTo = page.upTo
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
