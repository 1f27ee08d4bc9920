import { type EventKind, eventKinds } from '../event/kind.ts'
import { radioTopic } from '../event/topic.ts'
import type { History } from '../journal/history/history.ts'
import type { RetainedMessages } from '../journal/retained.ts'
import type { RetainedValue } from '../journal/retained-value.ts'
import { keyOf, orderAt, toValue } from '../journal/retained-values.ts'
import { createPacing } from '../listener/pacing.ts'
import { keepsStored } from '../store/commit.ts'

export type Parts = ReturnType<typeof createParts>

/** A moment in the life of a livestream: messages count up to `position`, times by the clock `now` (milliseconds). */
export interface Moment {
  position: number
  now: number
}

/** What a livestream shows of one kind. Of control states there are several: one for each name. */
export interface Part {
  kind: EventKind
  values: RetainedValue[]
}

/** At most so many messages before a moment are looked through for what was shown then. */
const mostBefore = 500
/** Events are accepted at most so long before their time, milliseconds. Most that are announced earlier are found as well. */
const aheadMs = 3_000
/** Messages that are read together. The first ones mostly tell all. */
const firstPage = 4
const pageSize = 200

/** Finds what livestreams show at a moment: of each kind, and of each name of a control state, the newest event. */
export function createParts({
  retained,
  history,
}: {
  retained: Pick<RetainedMessages, 'storedValues'>
  history: Pick<History, 'messages'>
}) {
  const reads = createPacing(1)

  return {
    /** The parts of a livestream, in the order of the kinds. An event whose time is ahead is not shown yet (open.md §4). */
    async of(livestreamId: string, moment: Moment): Promise<Part[]> {
      const known = await knownAt(livestreamId, moment, (kind, value) => !isShown(kind, value, moment))
      return known.map(({ kind, values }) => {
        const shown = values.filter((value) => isShown(kind, value, moment))
        return { kind, values: newestOfEach(shown, moment.now) }
      })
    },

    /**
     * Events that are to be shown later: their times are ahead. To a reader with a delay, an event is ahead also where it
     * was stored late, behind events that were accepted later: a moment counts by their times.
     */
    async ahead(livestreamId: string, moment: Moment): Promise<RetainedValue[]> {
      const isAhead = ({ position, time }: RetainedValue) => position <= moment.position && time > moment.now
      const isLater = (kind: EventKind, { position }: RetainedValue) =>
        waitsForItsTime(kind) && position > moment.position
      const known = (await knownAt(livestreamId, moment, isLater)).filter(({ kind }) => waitsForItsTime(kind))
      return known.flatMap(({ values }) => newestOfEach(values.filter(isAhead), moment.now))
    },
  }

  /** The values of now, and before those that are `isLater` what they have replaced, in the order of acceptance. */
  async function knownAt(
    livestreamId: string,
    moment: Moment,
    isLater: (kind: EventKind, value: RetainedValue) => boolean,
  ): Promise<Part[]> {
    const topicOf = (kind: EventKind) => radioTopic(livestreamId, kind)
    const now = eventKinds.map((kind) => ({ kind, values: retained.storedValues(topicOf(kind)) }))
    const later = now.flatMap(({ kind, values }) => values.filter((value) => isLater(kind, value)))
    const before = later.length > 0 ? await valuesBefore(livestreamId, moment, later) : []
    return now.map(({ kind, values }) => {
      // Control states that nothing has replaced since may lie far before those that something has.
      const replaced = before.filter(({ topic }) => topic === topicOf(kind))
      return { kind, values: [...replaced, ...values].sort((a, b) => a.position - b.position) }
    })
  }

  /**
   * The newest messages of a livestream up to a moment, in the order of acceptance: back to those that `later` values have
   * replaced. What was accepted last may be older than what came before it, such as a repetition after a fault. So the
   * search goes on to where no newer one can have been accepted.
   */
  async function valuesBefore(
    livestreamId: string,
    moment: Moment,
    later: readonly RetainedValue[],
  ): Promise<RetainedValue[]> {
    const kinds = new Map(eventKinds.map((kind) => [radioTopic(livestreamId, kind), kind]))
    const wanted = new Set(later.map(keyOf))
    /** The newest time that was found of what is wanted. */
    const times = new Map<string, number>()
    const found: RetainedValue[] = []
    let before: number | null = moment.position + 1
    while (before !== null && found.length < mostBefore && wanted.size > 0) {
      // Visitors may ask for hundreds of livestreams, and an event must not wait for them.
      await reads.turn()
      const page: Awaited<ReturnType<History['messages']>> = await history.messages(livestreamId, {
        before,
        limit: Math.min(firstPage + 4 * found.length, pageSize),
      })
      for (const entry of page.messages) {
        for (const [key, time] of times) if (entry.at + aheadMs <= time) wanted.delete(key)
        const value = toValue(entry, entry.position, entry.at)
        const kind = value && kinds.get(value.topic)
        if (!kind) continue
        found.push(value)
        const key = keyOf(value)
        if (isShown(kind, value, moment)) times.set(key, Math.max(value.time, times.get(key) ?? 0))
      }
      before = page.next
    }
    return found.reverse()
  }
}

/** What comes next is announced before its time. Everything else is shown from its time on. */
function waitsForItsTime(kind: EventKind): boolean {
  return kind.class !== 'track' || kind.isNow === true
}

function isShown(kind: EventKind, { position, time }: RetainedValue, moment: Moment): boolean {
  return position <= moment.position && (time <= moment.now || !waitsForItsTime(kind))
}

/** The newest value of each slot, unless it has expired. `values`: in the order of acceptance. */
function newestOfEach(values: readonly RetainedValue[], now: number): RetainedValue[] {
  const newest = new Map<string, RetainedValue>()
  for (const value of values) {
    const before = newest.get(value.slot)
    if (!before || !keepsStored(before.time, orderAt(value.time, now))) newest.set(value.slot, value)
  }
  return [...newest.values()].filter(({ expires }) => expires === undefined || expires > now)
}
