import type { Journal } from '../../journal/journal.ts'
import type { Returnable } from '../../journal/returnable.ts'
import { lowerQos } from '../connection/frames.ts'
import { choose, inOrder, isWanted, onePerPosition, type Terms } from './choice.ts'
import type { Owed } from './in-flight.ts'
import type { Session, SessionBounds } from './session.ts'

/** Maximum number of messages that the node reads from the journal in one call. */
const pageSize = 200

/** What a session still has to get: `owed`, and the messages of the journal after `upTo`. */
interface OwedPlace {
  upTo: number
  owed: readonly Owed[]
}

/** The backlog of a session that returns. */
interface Backlog {
  /** The messages of the backlog, in the order of their positions. */
  owed: Owed[]
  upTo: number
  replay: Session['replay']
  /** `dropped`: number of messages above the limits. `missing`: number of messages that the journal no longer keeps. */
  dropped: number
  missing: number
}

/**
 * Chooses the backlogs of sessions whose clients come back (docs/decisions, "The choice for a returning session is
 * made once, at its log-in").
 */
export function createBacklogs(parts: {
  journal: Journal
  returnable: Returnable
  bounds: Pick<SessionBounds, 'queueLimit' | 'maxOwed'>
}) {
  const { journal, returnable } = parts
  const { queueLimit, maxOwed } = parts.bounds

  return {
    /**
     * Chooses the backlog of a session. After a crash, the messages after `upTo`, up to `replay`, are sent again. They
     * fill the backlog up to `mostAgain` messages, and the session reads the others later.
     */
    async choose(
      subscriptions: Session['subscriptions'],
      { upTo, owed, replay }: OwedPlace & { replay: number },
      mostAgain: number,
      terms: Terms,
    ): Promise<Backlog> {
      const filters = [...subscriptions.keys()]
      const { wanted, missing } = await dropUnwanted(
        filters,
        { upTo, owed: inOrder(onePerPosition(owed)) },
        terms,
      )
      const floor = Math.min(journal.floor() - 1, replay)
      const kept = moveToFloor(filters, { upTo, owed: wanted }, floor, terms)
      const first = await sentAgain(kept, replay, terms, mostAgain)
      // Whether the journal has further messages to repeat, after `first.upTo`. The session reads them later.
      const isCut = first.upTo < replay
      const again = isCut ? await dropReadLater(journal, first, terms) : first
      const since = isCut ? [] : returnable.since(again.upTo, filters)
      // If `again` has more than `maxOwed` messages, `maxOwed` new ones still have room.
      const room = again.owed.length > maxOwed ? again.owed.length + maxOwed : maxOwed
      const chosen = choose(again, since, terms, { waiting: queueLimit, owed: room })
      return {
        owed: inOrder(chosen.owed),
        upTo: isCut ? again.upTo : journal.head(),
        replay: isCut ? { upTo: replay, head: journal.head() } : undefined,
        dropped: kept.dropped + chosen.dropped,
        missing,
      }
    },

    stillWanted: (all: readonly Owed[], terms: Terms) => stillWanted(journal, all, terms),
  }

  /**
   * Drops owed messages that the session no longer gets: they must take no room from others. If there is certainly room
   * for all, does nothing: this saves reading the journal.
   */
  async function dropUnwanted(
    filters: readonly string[],
    { upTo, owed }: OwedPlace,
    terms: Terms,
  ): Promise<{ wanted: Owed[]; missing: number }> {
    const stored = owed.filter((each) => each.stored)
    const others = owed.filter((each) => !each.stored)
    const room = Math.min(queueLimit, maxOwed) - owed.length
    const fits = () => returnable.since(upTo, filters).length <= room
    if (others.length === 0 || fits()) return { wanted: [...owed], missing: 0 }
    const { wanted, missing } = await stillWanted(journal, others, terms)
    return { wanted: inOrder([...stored, ...wanted]), missing }
  }

  /**
   * Moves the place of a session forward to position `floor`, because the journal may lack messages up to there.
   * Chooses from the messages between the old place and `floor`, as for an ordinary return. Each message chosen here
   * gets DUP, because it may have been sent before.
   */
  function moveToFloor(
    filters: readonly string[],
    place: OwedPlace & { owed: Owed[] },
    floor: number,
    terms: Terms,
  ): { upTo: number; owed: Owed[]; dropped: number } {
    if (place.upTo >= floor) return { ...place, dropped: 0 }
    const known = new Set(place.owed)
    // `queueLimit` does not apply: some of these messages may be in flight.
    const limits = { waiting: maxOwed, owed: maxOwed }
    const candidates = returnable.since(place.upTo, filters, floor)
    const { owed, dropped } = choose(place, candidates, terms, limits)
    return {
      upTo: floor,
      owed: owed.map((each) => (known.has(each) ? each : { ...each, dup: true })),
      dropped,
    }
  }

  /** Adds the messages to repeat up to position `to`, until `most` messages are owed. */
  async function sentAgain(before: OwedPlace, to: number, terms: Terms, most: number): Promise<OwedPlace> {
    const owed = [...before.owed]
    const known = new Set(owed.filter(({ retain }) => !retain).map(({ position }) => position))
    let { upTo } = before
    while (upTo < to && owed.length < most) {
      const page = await journal.read(upTo, to, pageSize)
      for (const entry of page.entries) {
        if (owed.length >= most) return { upTo, owed: inOrder(onePerPosition(owed)) }
        const { position } = entry
        upTo = position
        const qos = lowerQos(terms.asks(entry.topic, position), entry.qos)
        const again = { position, qos, retain: false, dup: true }
        if (qos > 0 && !known.has(position) && isWanted(again, entry, terms)) owed.push(again)
      }
      upTo = page.upTo
    }
    return { upTo, owed: inOrder(onePerPosition(owed)) }
  }
}

/** Returns the owed messages that the session still gets, and how many messages the journal no longer keeps. */
async function stillWanted(
  journal: Pick<Journal, 'getFirst'>,
  all: readonly Owed[],
  terms: Terms,
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

/** Drops retained values of a SUBSCRIBE that the session reads from the journal later: no value must come twice. */
async function dropReadLater(
  journal: Pick<Journal, 'getFirst'>,
  { upTo, owed }: OwedPlace,
  terms: Terms,
): Promise<OwedPlace> {
  const behind = owed.filter(({ position }) => position > upTo)
  const asRead = behind.map((each) => ({ ...each, retain: false, dup: false }))
  // `-Infinity`: a session that reads the journal gets data of any age.
  const { wanted } = await stillWanted(journal, asRead, { ...terms, now: -Infinity })
  const later = new Set(wanted.map(({ position }) => position))
  return { upTo, owed: owed.filter(({ position }) => !later.has(position)) }
}
