import type { Journal } from '../../journal/journal.ts'
import type { Returnable } from '../../journal/returnable.ts'
import type { Store } from '../../store/store.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { lowerQos } from '../connection/wire.ts'
import type { Denial, FilterRules } from '../filter-rules.ts'
import type { Access } from '../login/access.ts'
import { asksOf, choose, isWanted } from './choice.ts'
import type { Owed } from './in-flight.ts'
import type { Outgoing } from './outgoing-qos2.ts'
import type { Progress } from './progress.ts'
import { createSession, packetIdOf, type Session, type SessionBounds } from './session.ts'
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
  mayReceive: Access['mayReceive']
  rules: FilterRules
  bounds: SessionBounds
  clock: () => number
  metrics: Metrics
}) {
  const { store, journal, returnable, outgoing, progress, mayReceive, rules, clock, metrics } = parts
  const { queueLimit, maxOwed } = parts.bounds

  return {
    /** Fills a session in from its record. Returns what to do once its log-in is stored: count and report what is lost. */
    async bringBack(session: Session, record: SessionRecord): Promise<() => void> {
      const { dropped, superseded, denials } = await fillIn(session, record, maxOwed)
      return () => {
        rules.report(session, denials)
        metrics.messagesDropped.inc({ reason: 'queue-limit' }, dropped)
        metrics.messagesDropped.inc({ reason: 'superseded' }, superseded)
      }
    },

    /**
     * What a session that is away would get now: how many messages, how many of them may have been sent before, and how
     * many it has lost.
     */
    async waitingOf(record: SessionRecord): Promise<{ queued: number; inFlight: number; dropped: number }> {
      const session = createSession({ ...record, owner: undefined })
      await fillIn(session, record, Infinity)
      const { wanted } = await stillWanted(session.backlog, { ...termsOf(session), now: clock() })
      const sent = wanted.filter(({ dup }) => dup)
      const { size } = session.inFlight
      return { queued: size + wanted.length, inFlight: size + sent.length, dropped: session.dropped }
    },
  }

  /** What still comes of what a session is owed, and how many messages are no longer kept. */
  async function stillWanted(
    all: readonly Owed[],
    terms: Omit<Terms, 'limits'>,
  ): Promise<{ wanted: Owed[]; missing: number }> {
    const wanted: Owed[] = []
    let missing = 0
    for (let from = 0; from < all.length; ) {
      const page = await journal.getFirst(all.slice(from).map(({ position }) => position))
      for (const [index, entry] of page.entries()) {
        const owed = all[from + index]
        if (!owed) continue
        if (entry ? isWanted(owed, entry, terms) : owed.stored) wanted.push(owed)
        else if (!entry) missing++
      }
      from += page.length
    }
    return { wanted, missing }
  }

  /** `mostAgain`: as much as goes out again after a crash may be in the backlog. The rest is read later. */
  async function fillIn(
    session: Session,
    record: SessionRecord,
    mostAgain: number,
  ): Promise<{ dropped: number; superseded: number; denials: Denial[] }> {
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
    const { wanted, missing } = await withoutOver(session, { upTo: from, owed: owedBefore }, terms)
    const kept = withoutGap(session, { upTo: from, owed: wanted }, Math.min(journal.floor() - 1, to), terms)
    // What was sent at QoS 2 must not be found again in the journal.
    const again = await sentAgain(kept, to, terms, session.hasSentQos2 ? Infinity : mostAgain)
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
    session.dropped = record.dropped + dropped + missing
    return { dropped, superseded: missing, denials }
  }

  function termsOf(session: Session): Pick<Terms, 'asks' | 'mayReceive'> {
    return {
      asks: asksOf(session.subscriptions),
      mayReceive: (topic) => mayReceive(session.principal, topic),
    }
  }

  /** What does not come any more takes no room from what does. It is read only where room may be short. */
  async function withoutOver(
    { subscriptions }: Session,
    { upTo, owed }: { upTo: number; owed: readonly Owed[] },
    terms: Terms,
  ): Promise<{ wanted: Owed[]; missing: number }> {
    const stored = owed.filter((each) => each.stored)
    const others = owed.filter((each) => !each.stored)
    const room = Math.min(queueLimit, maxOwed) - owed.length
    const fits = () => returnable.since(upTo, subscriptions.keys()).length <= room
    if (others.length === 0 || fits()) return { wanted: [...owed], missing: 0 }
    const { wanted, missing } = await stillWanted(others, terms)
    return { wanted: inOrder([...stored, ...wanted]), missing }
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
    // Some of it may be in flight, whatever the queue limit is.
    const limits = { waiting: maxOwed, owed: maxOwed }
    const candidates = returnable.since(place.upTo, subscriptions.keys(), floor)
    const { owed, dropped } = choose(place, candidates, { ...terms, limits })
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
    terms: Terms,
    most: number,
  ): Promise<{ upTo: number; owed: Owed[] }> {
    const owed = [...before.owed]
    const known = new Set(owed.map(({ position }) => position))
    let { upTo } = before
    while (upTo < to && owed.length < most) {
      const page = await journal.read(upTo, to, pageSize)
      for (const entry of page.entries) {
        if (owed.length >= most) return { upTo, owed: inOrder(owed) }
        const { position } = entry
        upTo = position
        const qos = lowerQos(terms.asks(entry.topic, position), entry.qos)
        const again = { position, qos, retain: false, dup: true }
        if (qos > 0 && !known.has(position) && isWanted(again, entry, terms)) owed.push(again)
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
