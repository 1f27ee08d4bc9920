import type { Round } from '../event/warnings.ts'
import type { Item } from './item.ts'
import { createNewestMap } from './newest-map.ts'
import type { Records } from './records.ts'

export type Loops = ReturnType<typeof createLoops>

/** So many echoes of an item on a livestream are a loop. */
const loopRounds = 3
/** Who passes an event on does so within this time, milliseconds. Many playouts send the current element again each 30 s. */
const followsWithinMs = 10_000
/** So many repetitions of an item by a livestream alone show that it repeats its items. */
const ownRepeats = 3
/** Nobody repeats an item by itself faster than this, milliseconds. */
const fastestRepeatMs = 5_000
/** An item comes again within its length, or it is played once more. Bounds of that time, milliseconds. */
const withinMs = { least: 60_000, most: 10 * 60_000 }
/** A livestream counts as looping for so long after its last round, milliseconds. */
const markedMs = 3600_000
/** Bounds of memory (`createNewestMap`). */
const atLeast = { items: 50_000, marks: 10_000 }
const mostPlays = 8

/** What is known of a livestream that plays in a loop. */
export interface LoopMark {
  /** When its first round was warned of, milliseconds since the epoch. */
  since: number
  /** When its last round was, milliseconds since the epoch. */
  lastAt: number
  /** The livestream that published the item of its last round in between. */
  with: string
}

/** An item that a livestream has published. */
interface Play {
  key: string
  /** When the livestream published the item last: in the order of all events, and milliseconds since the epoch. */
  moment: number
  at: number
  /** An event within this time is of the same play, milliseconds. */
  withinMs: number
  rounds: number
  /** How often, one after the other, the livestream has repeated the item with nobody in between. */
  repeats: number
}

export interface PlayLine {
  plays: Play[]
  /** Of the last event. */
  item: Item
  /** The livestream repeats its items by itself after this time, milliseconds. */
  repeatsMs?: number
}

/** The last two livestreams that have published an item. */
interface Publications {
  last: Publication
  other?: Publication | undefined
}

interface Publication {
  livestreamId: string
  moment: number
  at: number
  /**
   * The moment of the publication from which it comes: its own, or that of `root` of the other livestream that it came
   * soon after.
   */
  root: number
}

/**
 * Recognises loops of rebroadcasters (open.md §7): houses that publish for their own livestream what they receive from
 * each other. The first event of an item on a livestream is never an echo. A further one is, if another livestream has
 * published the item in between. Three echoes are a loop.
 *
 * So that nothing else is taken for a loop:
 *
 * - The further event comes within the length of the item. Later, the station plays the item once more.
 * - What came in between came soon before, and may itself come from what the livestream had published. So a station that
 *   sends its current element each 30 seconds, and those that rebroadcast it, are no loop.
 * - A livestream that was seen to send its elements again and again, with nobody in between, makes no echo by it.
 *
 * Everything is in memory: after a start, a loop is found again in three rounds.
 */
export function createLoops(records: Records<{ plays?: PlayLine | undefined }>) {
  /** By key. */
  const items = createNewestMap<Publications>(atLeast.items)
  /** By livestream. */
  const marks = createNewestMap<LoopMark>(atLeast.marks)
  let moment = 0

  return {
    /** The item that a livestream published last. */
    lastOf: (livestreamId: string): Item | undefined => records.get(livestreamId)?.plays?.item,

    /** Whether an event of a livestream may be a round of a loop now, whatever its item is. That is rare. */
    mayLoop: (livestreamId: string): boolean =>
      records.get(livestreamId)?.plays?.plays.some(({ rounds }) => rounds >= loopRounds - 1) ?? false,

    /** The rounds of loops that an event of these livestreams would be now. Changes nothing. */
    roundsOf(item: Item | undefined, livestreamIds: readonly string[], now: number): Round[] {
      if (!item) return []
      const found: Round[] = []
      for (const livestreamId of livestreamIds) {
        const judged = item.keys.map((key) => judge(key, livestreamId, now, moment + 1))
        const round = judged.find(isLoop)
        if (round) found.push({ livestreamId, rounds: round.rounds })
      }
      return found
    },

    /**
     * Notes an event that was published for these livestreams. `isContinued`: it is the event of the call before, for
     * further livestreams. Returns the livestreams that are marked newly.
     */
    published(
      item: Item | undefined,
      livestreamIds: readonly string[],
      now: number,
      isContinued = false,
    ): string[] {
      if (!item) return []
      if (!isContinued) moment++
      // All before the first is noted: what an event says of one livestream did not come before it on another.
      const judged: JudgedPlay[] = []
      for (const livestreamId of livestreamIds)
        for (const key of item.keys) judged.push(judge(key, livestreamId, now, moment))
      const found: string[] = []
      for (const one of judged) {
        take(one, item, now)
        if (!one.isOwnRepeat) notePublication(one, now)
        if (isLoop(one) && mark(one.livestreamId, one.after, now)) found.push(one.livestreamId)
      }
      return found
    },

    /** The loop in which a livestream plays. Undefined: it plays in none. */
    markOf,

    /** The livestreams that play in loops. */
    marked: (now: number): [livestreamId: string, mark: LoopMark][] =>
      marks.entries().filter(([, mark]) => isCurrent(mark, now)),
  }

  /** What an event of an item on a livestream is, after all earlier events. */
  function judge(key: string, livestreamId: string, now: number, moment: number): JudgedPlay {
    const line = records.get(livestreamId)?.plays
    const play = line?.plays.find((play) => play.key === key)
    const other = lastOfOthers(items.get(key), livestreamId, moment)
    const root = other && now - other.at <= followsWithinMs ? other.root : moment
    const judged: JudgedPlay = { livestreamId, key, root, rounds: 0, repeats: 0, isOwnRepeat: false }
    if (!line || !play || now - play.at > play.withinMs) return judged
    const sinceMs = now - play.at
    judged.play = play
    judged.rounds = play.rounds
    if (line.repeatsMs !== undefined && sinceMs >= line.repeatsMs / 2) {
      judged.repeats = play.repeats
      judged.isOwnRepeat = true
    } else if (!other || other.moment <= play.moment) {
      judged.repeats = sinceMs >= fastestRepeatMs ? play.repeats + 1 : play.repeats
      judged.sinceMs = sinceMs
    } else if (root <= play.moment) {
      judged.rounds++
      judged.after = other.livestreamId
    }
    return judged
  }

  function take(judged: JudgedPlay, item: Item, at: number): void {
    const { livestreamId, key, rounds, repeats, sinceMs, play } = judged
    const record = records.of(livestreamId)
    record.plays ??= { plays: [], item }
    const line = record.plays
    line.item = item
    if (repeats >= ownRepeats && sinceMs !== undefined) line.repeatsMs = sinceMs
    const within = Math.min(Math.max(item.lengthMs, play?.withinMs ?? 0, withinMs.least), withinMs.most)
    line.plays[placeOf(key, line.plays)] = { key, moment, at, withinMs: within, rounds, repeats }
  }

  function notePublication({ key, livestreamId, root }: JudgedPlay, at: number): void {
    const known = items.get(key)
    const other = known?.last.livestreamId === livestreamId ? known.other : known?.last
    items.set(key, { last: { livestreamId, moment, at, root }, other })
  }

  /** Returns whether the livestream was not marked before. */
  function mark(livestreamId: string, after: string, now: number): boolean {
    const known = markOf(livestreamId, now)
    marks.set(livestreamId, { since: known?.since ?? now, lastAt: now, with: after })
    return known === undefined
  }

  function markOf(livestreamId: string, now: number): LoopMark | undefined {
    const known = marks.get(livestreamId)
    return known && isCurrent(known, now) ? known : undefined
  }
}

interface JudgedPlay {
  livestreamId: string
  key: string
  /** The earlier event of the same play on the livestream. */
  play?: Play
  /** Of the event, as of a `Publication`. */
  root: number
  rounds: number
  repeats: number
  /** The event is an echo of this livestream. */
  after?: string
  /** The livestream repeats its items by itself: the event says nothing. */
  isOwnRepeat: boolean
  /** The livestream has repeated the item after this time with nobody in between, milliseconds. */
  sinceMs?: number
}

function isCurrent({ lastAt }: LoopMark, now: number): boolean {
  return now - lastAt <= markedMs
}

function isLoop(judged: JudgedPlay): judged is JudgedPlay & { after: string } {
  return judged.after !== undefined && judged.rounds >= loopRounds
}

/** Where a play of an item goes: in place of its earlier one, or of the oldest where there are too many. */
function placeOf(key: string, plays: readonly Play[]): number {
  const place = plays.findIndex((play) => play.key === key)
  if (place >= 0) return place
  if (plays.length < mostPlays) return plays.length
  return plays.findIndex(({ moment }) => plays.every((other) => moment <= other.moment))
}

/** The last publication of an item by another livestream, before a moment. */
function lastOfOthers(
  item: Publications | undefined,
  livestreamId: string,
  moment: number,
): Publication | undefined {
  if (!item) return undefined
  const { last, other } = item
  if (last.livestreamId !== livestreamId && last.moment < moment) return last
  return other && other.livestreamId !== livestreamId && other.moment < moment ? other : undefined
}
