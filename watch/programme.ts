import { cut } from '../event/cut.ts'
import type { EventKind, HubEvent } from '../event/kind.ts'
import type { TrackEvent } from '../event/kinds/track.ts'
import { maxClockDifference } from '../event/warnings.ts'
import type { Accepted } from '../validator/settlement.ts'
import type { Records } from './records.ts'

/** What is counted of the events of a livestream. */
export interface Counts {
  sums: Sums
  /** The longest gaps, the longest first. */
  longest: Gap[]
}

/** From the end of an element to the start of the next one. */
interface Gap {
  /** Milliseconds since the epoch. */
  from: number
  minutes: number
}

export type Sums = typeof nothing

const nothing = {
  /** Events that were published, without repetitions. */
  events: 0,
  /** Elements that began to play. An element counts by its first event. */
  elements: 0,
  /** Elements whose event came later after their start than clocks may differ. */
  late: 0,
  /** Elements of the type music, and those of them that lack something. */
  music: 0,
  withoutIsrc: 0,
  withoutArtist: 0,
  withoutCover: 0,
  /** Elements before which a next one was announced, and those of them that were the announced one. */
  announced: 0,
  cameTrue: 0,
  gaps: 0,
  gapMinutes: 0,
}

const sumNames = Object.keys(nothing) as (keyof Sums)[]

/** How many of the longest gaps are kept. */
const mostGaps = 5
/** An element that should have ended longer ago than this is stale (open.md §4): from its end on there is a gap. */
const gapMs = 10 * 60_000
/** As much of a `playlistItemId` is compared, characters. */
const maxItemId = 200

/** What a livestream plays, and what it has announced. */
export interface ProgrammeLine {
  /** The institution that published it: what the one before has published counts for no other. */
  institutionId: string
  itemId: string
  /** Milliseconds since the epoch. */
  start: number
  end: number
  /** The last two announced items, the newest first. */
  announced: readonly string[]
}

const nothingAnnounced: readonly string[] = []

/**
 * Counts what the events of livestreams say about their programme (open.md §7). Gets the time passed in. What plays is in
 * memory alone: the first element after a start ends no gap.
 */
export function createProgramme(records: Records<{ line?: ProgrammeLine | undefined }>) {
  return {
    /** Forgets what plays. */
    forget(): void {
      for (const [, record] of records.all()) record.line = undefined
    },

    /**
     * Counts an event that an institution published now. `time`: what the event says, milliseconds since the epoch.
     * `isInterrupted`: the hub could get no events for a while before, so it has no gap.
     */
    count(
      counts: Counts,
      livestreamId: string,
      { event, kind, time, institutionId }: Pick<Accepted, 'event' | 'kind' | 'time' | 'institutionId'>,
      { now, isInterrupted }: { now: number; isInterrupted: boolean },
    ): void {
      counts.sums.events++
      if (!isTrack(event, kind)) return
      const record = records.of(livestreamId)
      const last = record.line
      const line = last?.institutionId === institutionId ? last : undefined
      const itemId = itemIdOf(event)
      if (!kind.isNow) {
        if (line && line.itemId !== itemId && line.announced[0] !== itemId)
          line.announced = [itemId, ...line.announced].slice(0, 2)
        return
      }
      // A start far ahead must not make all others late.
      const start = Math.min(time, now + gapMs)
      // Whatever its times say, it is on air now.
      const end = Math.max(start + event.length * 1000, now)
      if (line?.itemId === itemId) {
        line.end = Math.max(line.end, end)
        return
      }
      // What came late is not on air any more.
      if (line && start < line.start) return
      countElement(counts, event, now - time)
      if (line) {
        if (!isInterrupted) countGap(counts, line.end, start)
        countAnnouncement(counts, line, itemId)
      }
      const announced = line ? stillAhead(line.announced, itemId) : nothingAnnounced
      record.line = { institutionId, itemId, start, end, announced }
    },
  }
}

export type Programme = ReturnType<typeof createProgramme>

export function emptyCounts(): Counts {
  return { sums: { ...nothing }, longest: [] }
}

/** Adds counts to others, in place. */
export function add(counts: Counts, { sums, longest }: Counts): void {
  for (const name of sumNames) counts.sums[name] += sums[name]
  addGaps(counts, longest)
}

function addGaps(counts: Counts, more: readonly Gap[]): void {
  if (more.length === 0) return
  counts.longest = [...counts.longest, ...more].sort((a, b) => b.minutes - a.minutes).slice(0, mostGaps)
}

function countElement({ sums }: Counts, event: TrackEvent, behindMs: number): void {
  sums.elements++
  if (behindMs > maxClockDifference) sums.late++
  if (event.type !== 'music') return
  sums.music++
  if (isBlank(event.isrc)) sums.withoutIsrc++
  if (isBlank(event.artist)) sums.withoutArtist++
  const hasCover = event.media?.some(({ type, isFallback }) => type === 'cover' && isFallback !== true)
  if (hasCover !== true) sums.withoutCover++
}

function countGap(counts: Counts, end: number, start: number): void {
  if (start - end <= gapMs) return
  const minutes = Math.round((start - end) / 60_000)
  counts.sums.gaps++
  counts.sums.gapMinutes += minutes
  addGaps(counts, [{ from: end, minutes }])
}

function countAnnouncement({ sums }: Counts, { announced }: ProgrammeLine, itemId: string): void {
  if (announced.length === 0) return
  sums.announced++
  // A playout may send what comes behind an element before the element itself.
  if (announced.includes(itemId)) sums.cameTrue++
}

/** What was announced later than the item that plays now. */
function stillAhead(announced: readonly string[], itemId: string): readonly string[] {
  const place = announced.indexOf(itemId)
  return place > 0 ? announced.slice(0, place) : nothingAnnounced
}

function itemIdOf({ playlistItemId, title, start }: TrackEvent): string {
  return cut(isBlank(playlistItemId) ? `${start} ${title}` : playlistItemId, maxItemId)
}

function isTrack(_event: HubEvent, kind: EventKind): _event is TrackEvent {
  return kind.class === 'track'
}

function isBlank(text: string | null | undefined): boolean {
  return !text || text.trim() === ''
}
