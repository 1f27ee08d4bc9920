import { radioTree } from '../acl/access.ts'
import { readObject } from '../journal/history/event-row.ts'
import type { History } from '../journal/history/history.ts'
import { isHistory } from '../journal/keeping.ts'
import type { RetainedMessages } from '../journal/retained.ts'
import { createLivestreams } from './livestreams.ts'
import { createNow } from './now.ts'
import { createParts, type Moment } from './parts.ts'
import { playedAt } from './played.ts'
import { createPositionBefore } from './position-before.ts'
import { createState } from './state.ts'
import { createStreams } from './streams.ts'
import { viewOf } from './view.ts'

const wholeView = viewOf([radioTree])

export type OnAir = ReturnType<typeof createOnAir>

/** Reads what is on air: now, as a stream, and at a time (open.md §4). It keeps nothing of its readers. */
export function createOnAir(
  parts: Parameters<typeof createLivestreams>[0] &
    Parameters<typeof createParts>[0] &
    Parameters<typeof createPositionBefore>[0] &
    Omit<Parameters<typeof createStreams>[0], 'positionBefore' | 'parts' | 'state' | 'livestreams'> & {
      retained: RetainedMessages
      history: Pick<History, 'messages' | 'positionAt'>
    },
) {
  const { journal, retained, history, clock } = parts
  const livestreams = createLivestreams(parts)
  const shown = createParts(parts)
  const now = createNow({ parts: shown, livestreams })
  const state = createState({ retained, parts: shown, now })
  const positionBefore = createPositionBefore(parts)
  return {
    livestreams,
    now: now.of,
    /** What a livestream shows at present, to those who may read all. Undefined: there is no such livestream. */
    async shows(livestreamId: string): Promise<Record<string, unknown> | undefined> {
      const found = await now.of(livestreamId, wholeView, { position: journal.head(), now: clock() })
      return found && readObject(Buffer.from(found.text))
    },
    streams: createStreams({ ...parts, positionBefore, parts: shown, state, livestreams }),
    playedAt: (livestreamId: string, time: number) => playedAt(history, livestreamId, time),

    /** Calls `listener` with the id of a livestream that may show something else now. */
    onChange(listener: (livestreamId: string) => void): void {
      journal.onEach((entry) => {
        if (isHistory(entry) && entry.stream !== undefined) listener(entry.stream)
      })
      retained.onSilentChange((topic) => listener(topic.split('/')[1] ?? ''))
    },

    /** The present, or the moment before `delayMs`. Undefined: the journal does not reach back so far. */
    async momentBefore(delayMs: number): Promise<Moment | undefined> {
      if (delayMs === 0) return { position: journal.head(), now: clock() }
      const position = await positionBefore(delayMs)
      return position < journal.floor() - 1 ? undefined : { position, now: clock() - delayMs }
    },
  }
}
