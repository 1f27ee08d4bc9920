import type { Journal } from '../../journal/journal.ts'
import type { Returnable } from '../../journal/returnable.ts'
import { lowerQos } from '../connection/frames.ts'
import { choose, isWanted, type Terms } from './choice.ts'
import type { Owed } from './in-flight.ts'
import type { Session, SessionBounds } from './session.ts'

/** Maximum number of messages that the node reads from the journal in one call. */
const pageSize = 200

/** The messages that a session still has to get: those of the journal after `upTo`, and those in `owed`. */
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

/** Chooses the messages of a session whose client comes back: those that it is owed, and newer ones of the journal. */
export function createBacklogs(parts: {
  journal: Journal
  returnable: Returnable
  bounds: Pick<SessionBounds, 'queueLimit' | 'maxOwed'>
}) {
  const { journal, returnable } = parts
  const { queueLimit, maxOwed } = parts.bounds

  return {
    /**
     * Chooses the backlog of a session. After a crash, messages after `upTo`, up to `replay`, may have been sent, and
     * are sent again. They go into the backlog until it has `mostAgain` messages. The session reads the others later.
     */
    async choose(
      subscriptions: Session['subscriptions'],
      { upTo, owed, replay }: OwedPlace & { replay: number },
      mostAgain: number,
      terms: Terms,
    ): Promise<Backlog> {
      const filters = [...subscriptions.keys()]
      const { wanted, missing } = await dropUnwanted(filters, { upTo, owed: dropDuplicates(owed) }, terms)
      const floor = Math.min(journal.floor() - 1, replay)
      const kept = moveToFloor(filters, { upTo, owed: wanted }, floor, terms)
      const first = await sentAgain(kept, replay, terms, mostAgain)
      // `isCut`: not all messages to repeat fit into the backlog. The session reads those after `first.upTo` later.
      const isCut = first.upTo < replay
      const again = isCut ? await dropReadLater(journal, first, terms) : first
      const since = isCut ? [] : returnable.since(again.upTo, filters)
      // If more than `maxOwed` messages are sent again, up to `maxOwed` new messages are chosen besides.
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
   * Leaves out owed messages that the session no longer gets (`isWanted`), so that these do not count for the limits.
   * Reads the messages from the journal only if a limit may be reached.
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
   * Moves the place of a session up to `floor`, because the journal no longer has all messages after the old place. Of
   * the messages between the two places, keeps those that the session would also get if it came back without a crash
   * (`choose`). These get DUP, because they may have been sent.
   */
  function moveToFloor(
    filters: readonly string[],
    place: OwedPlace & { owed: Owed[] },
    floor: number,
    terms: Terms,
  ): { upTo: number; owed: Owed[]; dropped: number } {
    if (place.upTo >= floor) return { ...place, dropped: 0 }
    const known = new Set(place.owed)
    // The queue limit does not apply, because some of these messages may be in flight.
    const limits = { waiting: maxOwed, owed: maxOwed }
    const candidates = returnable.since(place.upTo, filters, floor)
    const { owed, dropped } = choose(place, candidates, terms, limits)
    return {
      upTo: floor,
      owed: owed.map((each) => (known.has(each) ? each : { ...each, dup: true })),
      dropped,
    }
  }

  /** Adds to `owed` the messages to repeat: after `before.upTo`, up to `to`. Stops when `most` messages are owed. */
  async function sentAgain(before: OwedPlace, to: number, terms: Terms, most: number): Promise<OwedPlace> {
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

/**
 * Leaves out retained values of a SUBSCRIBE that the session will read from the journal later, after `upTo`. So the
 * client gets each value once.
 */
async function dropReadLater(
  journal: Pick<Journal, 'getFirst'>,
  { upTo, owed }: OwedPlace,
  terms: Terms,
): Promise<OwedPlace> {
  const behind = owed.filter(({ position }) => position > upTo)
  const asRead = behind.map((each) => ({ ...each, retain: false, dup: false }))
  // Removes every message that `stillWanted` returns. Counts no message as expired, because a session that reads the
  // journal gets the value of a data topic whatever its age. So expired control events are removed too, which no
  // session would get anyway.
  const { wanted } = await stillWanted(journal, asRead, { ...terms, now: -Infinity })
  const later = new Set(wanted.map(({ position }) => position))
  return { upTo, owed: owed.filter(({ position }) => !later.has(position)) }
}

/** Keeps one message for each position: the first in the list. */
function dropDuplicates(owed: readonly Owed[]): Owed[] {
  const byPosition = new Map<number, Owed>()
  for (const each of owed) if (!byPosition.has(each.position)) byPosition.set(each.position, each)
  return inOrder([...byPosition.values()])
}

function inOrder(owed: Owed[]): Owed[] {
  return owed.sort((a, b) => a.position - b.position)
}
