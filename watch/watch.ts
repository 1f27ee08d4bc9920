import { eventKinds, type HubEvent } from '../event/kind.ts'
import { radioTopic } from '../event/topic.ts'
import type { Entry } from '../journal/entry.ts'
import type { Log } from '../telemetry/log.ts'
import type { Watch as PipelineWatch } from '../validator/settlement.ts'
import { itemOf } from './item.ts'
import { createLoops, type LoopMark } from './loops.ts'

export type Watch = ReturnType<typeof createWatch>

const [nowKind] = eventKinds.filter(({ isNow }) => isNow)

/**
 * Watches beside the pipeline what livestreams play (open.md §7): it learns of each event that any node has stored, at
 * both doors, and blocks none. Everything is in memory.
 */
export function createWatch(parts: {
  /** Whether loops are looked for (`HUB_LOOPS`). */
  loops: 'warn' | 'off'
  /** Calls back with each message that another node appends. */
  onAppended: (listener: (entry: Entry) => void) => void
  clock: () => number
  log: Log
}) {
  const { clock, log } = parts
  const loops = parts.loops === 'warn' ? createLoops() : undefined
  /** The payload of the last message of another node: an event has a message for each of its livestreams. */
  let lastPayload: Buffer | undefined
  let lastItem: ReturnType<typeof itemOf>
  if (loops) parts.onAppended(heard)

  return {
    /** For the pipeline of this node. */
    pipeline: {
      roundsOf: ({ event, kind, livestreamIds }) =>
        loops && kind.isNow ? loops.roundsOf(itemOf(event), livestreamIds, clock()) : [],

      published({ event, kind, livestreamIds }) {
        if (!loops || !kind.isNow) return
        for (const livestreamId of loops.published(itemOf(event), livestreamIds, clock())) {
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

    /** How many livestreams play in loops. */
    loopCount: (): number => loops?.count(clock()) ?? 0,
  }

  function heard({ topic, stream, payload }: Entry): void {
    if (!nowKind || stream === undefined || topic !== radioTopic(stream, nowKind)) return
    const isContinued = payload === lastPayload
    if (!isContinued) lastItem = itemOf(readEvent(payload))
    lastPayload = payload
    loops?.published(lastItem, [stream], clock(), isContinued)
  }
}

/** An event that a node has stored is valid. */
function readEvent(payload: Buffer): HubEvent {
  return JSON.parse(payload.toString())
}
