import type { ErrorItem } from '../event/error.ts'
import { eventKinds, type HubEvent } from '../event/kind.ts'
import { radioTopic } from '../event/topic.ts'
import type { Round } from '../event/warnings.ts'
import type { Entry } from '../journal/entry.ts'
import { institutionOf, readObject } from '../journal/history/event-row.ts'
import type { Watch as PipelineWatch } from '../validator/settlement.ts'
import { type Item, itemOf } from './item.ts'
import { createLoops, type LoopMark, type PlayLine } from './loops.ts'
import { createProgramme, type Programme, type ProgrammeLine } from './programme.ts'
import { createRecords } from './records.ts'
import type { Heard } from './silence.ts'
import { openSilences } from './silences.ts'
import { createWeekly } from './weekly.ts'

export type Watch = Awaited<ReturnType<typeof openWatch>>

/** A livestream with something to notice. `since`: milliseconds since the epoch. */
interface Marked {
  livestreamId: string
  since: number
}

const noRounds: readonly Round[] = []

/** The record of a livestream. */
interface Known {
  heard: Heard | undefined
  line: ProgrammeLine | undefined
  plays: PlayLine | undefined
}

const [nowKind] = eventKinds.filter(({ isNow }) => isNow)

/**
 * Watches beside the pipeline what livestreams play (open.md §7): it learns of each event that any node has stored, at
 * both doors, and blocks none.
 */
export async function openWatch(
  parts: Omit<Parameters<typeof openSilences>[0], 'records'> &
    Parameters<typeof createWeekly>[0] & {
      /** Whether loops are looked for (`HUB_LOOPS`). */
      loops: 'warn' | 'off'
      /** The institution that a livestream belongs to. Undefined: the feed does not say. */
      ownerOf: (livestreamId: string) => string | undefined
      /** Calls back with each message that another node appends. */
      onAppended: (listener: (entry: Entry) => void) => void
      /** Calls back with each message that any node appends. */
      onEach: (listener: (entry: Entry) => void) => void
    },
) {
  const { clock, log, isLeader, ownerOf } = parts
  const records = createRecords<Known>(() => ({ heard: undefined, line: undefined, plays: undefined }))
  const silences = await openSilences({ ...parts, records })
  const weekly = createWeekly(parts)
  const programme = createProgramme(records)
  /** The leader counts for all nodes: what a livestream plays may come to another node than what it had announced. */
  let isCounter = false
  const loops = parts.loops === 'warn' ? createLoops(records) : undefined
  /** The last message of another node: an event has a message for each of its livestreams. */
  let last: { payload: Buffer; event: HubEvent; item: Item | undefined } | undefined
  const refusedListeners: ((institutionId: string, errors: readonly ErrorItem[]) => void)[] = []
  parts.onAppended(heard)
  parts.onEach(reported)

  return {
    start(): void {
      silences.start()
      weekly.start()
    },

    async close(): Promise<void> {
      await silences.close()
      await weekly.close()
    },

    /** For the pipeline of this node. */
    pipeline: {
      roundsOf({ event, kind, livestreamIds }) {
        if (!loops || !kind.isNow || !livestreamIds.some(loops.mayLoop)) return noRounds
        return loops.roundsOf(itemOn(livestreamIds[0], event), livestreamIds, clock())
      },

      published(accepted, isRepetition) {
        const { event, kind, livestreamIds, institutionId } = accepted
        const now = clock()
        if (!isRepetition && isCounting()) for (const id of livestreamIds) count(id, accepted, now)
        silences.published(livestreamIds, institutionId, now)
        if (!loops || !kind.isNow) return
        for (const livestreamId of loops.published(itemOn(livestreamIds[0], event), livestreamIds, now)) {
          const mark = loops.markOf(livestreamId, now)
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

    /** The livestreams that are silent. `since`: when their last event was accepted, milliseconds since the epoch. */
    silent: silences.silent,

    /** How many livestreams are silent. */
    silentCount: silences.count,

    /** How many livestreams play in loops. */
    loopCount: (): number => loops?.marked(clock()).length ?? 0,

    /** What is noticed of livestreams now, by institution: their owner, who may not have published the last event. */
    noticed(): Map<string, { silent: Marked[]; loops: Marked[] }> {
      const noticed = new Map<string, { silent: Marked[]; loops: Marked[] }>()
      const of = (institutionId: string) => {
        const known = noticed.get(institutionId) ?? { silent: [], loops: [] }
        noticed.set(institutionId, known)
        return known
      }
      for (const { institutionId, ...one } of silences.silent())
        of(ownerOf(one.livestreamId) ?? institutionId).silent.push(one)
      for (const [livestreamId, { since }] of loops?.marked(clock()) ?? []) {
        const institutionId = ownerOf(livestreamId) ?? silences.institutionOf(livestreamId)
        if (institutionId !== undefined) of(institutionId).loops.push({ livestreamId, since })
      }
      return noticed
    },

    /** Calls back on the leader with the errors of each refused event. */
    onRefused: (listener: (institutionId: string, errors: readonly ErrorItem[]) => void): void =>
      void refusedListeners.push(listener),

    /** What was counted of an institution in a week. */
    weekOf: weekly.of,
  }

  function heard(entry: Entry): void {
    const { topic, stream, payload, institutionId, isReport, isRepetition, at } = entry
    if (isReport || stream === undefined || institutionId === undefined) return
    const now = clock()
    const isCounted = isCounting() && !isRepetition
    const isNow = loops !== undefined && nowKind !== undefined && topic === radioTopic(stream, nowKind)
    const isContinued = payload === last?.payload
    if (isCounted || isNow) {
      if (!last || !isContinued) {
        const event = readEvent(payload)
        last = { payload, event, item: isNow ? itemOn(stream, event) : undefined }
      }
      const kind = isCounted ? eventKinds.find((kind) => topic === radioTopic(stream, kind)) : undefined
      const { time = at } = entry.queue
      if (kind) count(stream, { event: last.event, kind, time, institutionId }, now)
    }
    silences.published([stream], institutionId, now)
    if (isNow) loops.published(last?.item, [stream], now, isContinued)
  }

  /** The report of an event, of any node. */
  function reported(entry: Entry): void {
    if (!entry.isReport || !entry.hasErrors || !isCounting()) return
    const { dryRun, errors } = readObject(entry.payload)
    if (dryRun === true || !Array.isArray(errors)) return
    const found: ErrorItem[] = errors
    weekly.refused(
      institutionOf(entry),
      found.map(({ errorCode }) => errorCode),
    )
    for (const listener of refusedListeners) listener(institutionOf(entry), found)
  }

  function itemOn(livestreamId: string | undefined, event: HubEvent): Item | undefined {
    return itemOf(event, livestreamId === undefined ? undefined : loops?.lastOf(livestreamId))
  }

  function isCounting(): boolean {
    if (isLeader() === isCounter) return isCounter
    isCounter = !isCounter
    // Another node counts what comes meanwhile.
    if (!isCounter) programme.forget()
    return isCounter
  }

  function count(id: string, of: Parameters<Programme['count']>[2], now: number): void {
    const circumstances = { now, isInterrupted: silences.isInterrupted(id) }
    programme.count(weekly.countsOf(id, of.institutionId, now), id, of, circumstances)
  }
}

/** An event that a node has stored is valid. */
function readEvent(payload: Buffer): HubEvent {
  return JSON.parse(payload.toString())
}
