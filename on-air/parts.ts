import { type EventKind, eventKinds } from '../event/kind.ts'
import { radioTopic } from '../event/topic.ts'
import type { History } from '../journal/history/history.ts'
import type { RetainedMessages } from '../journal/retained.ts'
import type { RetainedValue } from '../journal/retained-value.ts'
import { orderAt, toValue } from '../journal/retained-values.ts'
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
const pageSize = 200

/** Finds what livestreams show at a moment: of each kind, and of each name of a control state, the newest event. */
export function createParts({
  retained,
  history,
}: {
  retained: Pick<RetainedMessages, 'storedValues'>
  history: Pick<History, 'messages'>
}) {
  return {
    /** The parts of a livestream, in the order of the kinds. An event whose time is ahead is not shown yet (open.md §4). */
    async of(livestreamId: string, moment: Moment): Promise<Part[]> {
      let before: Promise<RetainedValue[]> | undefined
      const parts: Part[] = []
      for (const kind of eventKinds) {
        const topic = radioTopic(livestreamId, kind)
        const retainedNow = retained.storedValues(topic)
        const isNow = retainedNow.every((value) => isShown(kind, value, moment))
        before ??= isNow ? undefined : valuesBefore(livestreamId, moment.position)
        const known = isNow ? retainedNow : ((await before) ?? []).filter((value) => value.topic === topic)
        const shown = known.filter((value) => isShown(kind, value, moment))
        parts.push({ kind, values: newestOfEach(shown, moment.now) })
      }
      return parts
    },

    /** Retained events that are to be shown later: their times are ahead. */
    ahead: (livestreamId: string, { position, now }: Moment): RetainedValue[] =>
      eventKinds
        .filter(waitsForItsTime)
        .flatMap((kind) =>
          retained
            .storedValues(radioTopic(livestreamId, kind))
            .filter((value) => value.position <= position && value.time > now),
        ),
  }

  /** The newest messages of a livestream up to a position, in the order of acceptance. */
  async function valuesBefore(livestreamId: string, position: number): Promise<RetainedValue[]> {
    const found: RetainedValue[] = []
    let before: number | null = position + 1
    while (before !== null && found.length < mostBefore) {
      const page: Awaited<ReturnType<History['messages']>> = await history.messages(livestreamId, {
        before,
        limit: pageSize,
      })
      for (const entry of page.messages) {
        const value = toValue(entry, entry.position, entry.at)
        if (value) found.push(value)
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
