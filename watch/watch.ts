import { eventKinds, type HubEvent } from '../event/kind.ts'
import { radioTopic } from '../event/topic.ts'
import type { Entry } from '../journal/entry.ts'
import type { Watch as PipelineWatch } from '../validator/settlement.ts'
import { itemOf } from './item.ts'
import { createLoops, type LoopMark } from './loops.ts'
import { openSilences } from './silences.ts'

export type Watch = Awaited<ReturnType<typeof openWatch>>

const [nowKind] = eventKinds.filter(({ isNow }) => isNow)

/**
 * Watches beside the pipeline what livestreams play (open.md §7): it learns of each event that any node has stored, at
 * both doors, and blocks none.
 */
export async function openWatch(
  parts: Parameters<typeof openSilences>[0] & {
    /** Whether loops are looked for (`HUB_LOOPS`). */
    loops: 'warn' | 'off'
    /** Calls back with each message that another node appends. */
    onAppended: (listener: (entry: Entry) => void) => void
  },
) {
  const { clock, log } = parts
  const silences = await openSilences(parts)
  const loops = parts.loops === 'warn' ? createLoops() : undefined
  /** The payload of the last message of another node: an event has a message for each of its livestreams. */
  let lastPayload: Buffer | undefined
  let lastItem: ReturnType<typeof itemOf>
  /** An event is asked about before it is stored, and noted when it is. */
  const items = new WeakMap<HubEvent, ReturnType<typeof itemOf>>()
  parts.onAppended(heard)

  return {
    start: silences.start,
    close: silences.close,

    /** For the pipeline of this node. */
    pipeline: {
      roundsOf({ event, kind, livestreamIds }) {
        if (!loops || !kind.isNow) return []
        const item = itemOf(event)
        items.set(event, item)
        return loops.roundsOf(item, livestreamIds, clock())
      },

      published({ event, kind, livestreamIds, institutionId }) {
        silences.published(livestreamIds, institutionId)
        if (!loops || !kind.isNow) return
        const item = items.has(event) ? items.get(event) : itemOf(event)
        for (const livestreamId of loops.published(item, livestreamIds, clock())) {
          const mark = loops.markOf(livestreamId, clock())
          log.warn(
            { livestream: livestreamId, with: mark?.with },
            'a livestream plays in a loop with another',
          )
        }
      },
    } satisfies PipelineWatch,

    /** Whether a livestream plays in a loop of rebroadcasters. */
    loopOf: (livestreamId: string): LoopMark | undefined => loops?.markOf(livestreamId, clock()),

    /** Since when a livestream is silent for longer than usual, ISO 8601. Undefined: it is not. */
    silentSince: silences.silentSince,

    /** How many livestreams are silent. */
    silentCount: silences.count,

    /** How many livestreams play in loops. */
    loopCount: (): number => loops?.count(clock()) ?? 0,
  }

  function heard({ topic, stream, payload, institutionId, isReport }: Entry): void {
    if (isReport || stream === undefined || institutionId === undefined) return
    silences.published([stream], institutionId)
    if (!loops || !nowKind || topic !== radioTopic(stream, nowKind)) return
    const isContinued = payload === lastPayload
    if (!isContinued) lastItem = itemOf(readEvent(payload))
    lastPayload = payload
    loops.published(lastItem, [stream], clock(), isContinued)
  }
}

/** An event that a node has stored is valid. */
function readEvent(payload: Buffer): HubEvent {
  return JSON.parse(payload.toString())
}
