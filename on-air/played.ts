import { eventKinds } from '../event/kind.ts'
import { radioTopic } from '../event/topic.ts'
import type { Entry } from '../journal/entry.ts'
import type { History } from '../journal/history/history.ts'

/** What played at a time, and what before and after it. Null: nothing that is kept. */
interface Played {
  before: Entry | null
  playing: Entry
  after: Entry | null
}

/** Messages that are read together. */
const pageSize = 200
/** The search reads at most so many messages of a livestream. */
const mostRead = 5_000

/** The kind that tells what begins to play. */
const playingKind = eventKinds.find(({ isNow }) => isNow)

/**
 * What a livestream played at `time`, by event time: the greatest start that is not later, of equal ones the later
 * arrival (open.md §4). Undefined: the journal does not reach back so far. Publishers may correct the past, so all that
 * is kept is read: `readBytes` of payloads.
 */
export async function playedAt(
  { messages }: Pick<History, 'messages'>,
  livestreamId: string,
  time: number,
): Promise<{ played: Played | undefined; readBytes: number }> {
  const topic = playingKind && radioTopic(livestreamId, playingKind)
  let [before, playing, after]: (Entry | undefined)[] = []
  let next: number | null = Number.MAX_SAFE_INTEGER
  let readBytes = 0
  for (let read = 0; next !== null && read < mostRead; ) {
    const page: Awaited<ReturnType<History['messages']>> = await messages(livestreamId, {
      before: next,
      limit: pageSize,
    })
    read += page.messages.length
    next = page.next
    for (const entry of page.messages) {
      readBytes += entry.payload.length
      // The newest comes first: of equal starts it stays.
      if (entry.topic !== topic) continue
      const start = startOf(entry)
      if (start > time) {
        if (!after || start < startOf(after)) after = entry
      } else if (!playing || start > startOf(playing)) {
        before = playing
        playing = entry
      } else if (start < startOf(playing) && (!before || start > startOf(before))) before = entry
    }
  }
  const played = playing && { before: before ?? null, playing, after: after ?? null }
  return { played, readBytes }
}

function startOf({ retained }: Entry): number {
  return retained?.time ?? 0
}
