import { emptyGaps, type Gaps, learn, usualGap } from './gaps.ts'
import type { Records } from './records.ts'

export type Silence = ReturnType<typeof createSilence>

/** So many usual gaps without an event are silence. */
const silentGaps = 2
/** A usual gap counts as not shorter than this, milliseconds: nobody is silent before ten minutes are over. */
const leastGapMs = 5 * 60_000
/** The same for the hub as a whole. */
const leastGapOfHubMs = 60_000
/** Fewer livestreams than this do not show that the hub itself gets nothing. */
const leastForHub = 5
/** Before, the hub does not know what is usual in each hour of the week. With the gap that is open after a week; milliseconds. */
const learningMs = 8 * 24 * 3600_000
/** A livestream that was silent for so long is given up, milliseconds. */
export const forgottenMs = 60 * 24 * 3600_000

/** What is known of a livestream. */
export interface Heard {
  institutionId: string
  gaps: Gaps
  /** When its first event was accepted, milliseconds since the epoch. */
  since: number
  /** When its last event was accepted, milliseconds since the epoch. */
  at: number
  /** From when on silence counts: `at`, or later if the hub itself could get nothing in between. */
  from: number
  /** Whether it is silent now. */
  isSilent: boolean
}

/**
 * Learns how often each livestream has events, and finds those that are silent for twice as long as usual at this hour
 * (open.md §7). Gets the time passed in.
 */
export function createSilence(records: Records<{ heard?: Heard | undefined }>) {
  /** Those that are silent: pages ask for them again and again. */
  const silent = new Map<string, Heard>()
  const hub: Heard = { institutionId: '', gaps: emptyGaps(), since: 0, at: 0, from: 0, isSilent: false }

  return {
    interrupted,

    /** Takes over what was stored of a livestream. Its silence counts from now on: the hub was away. */
    restore(
      livestreamId: string,
      { institutionId, gaps, since, at }: Omit<Heard, 'from' | 'isSilent'>,
      now: number,
    ) {
      const record = now - at > forgottenMs ? undefined : records.stay(livestreamId)
      if (record) record.heard = { institutionId, gaps, since, at, from: now, isSilent: false }
    },

    /** Notes an event. Returns whether the livestream was silent before. */
    published(livestreamId: string, institutionId: string, now: number): boolean {
      note(hub, now)
      const record = records.stay(livestreamId)
      const known = record?.heard
      if (!known) {
        const times = { since: now, at: now, from: now }
        if (record) record.heard = { institutionId, gaps: emptyGaps(), ...times, isSilent: false }
        return false
      }
      known.institutionId = institutionId
      if (known.isSilent) silent.delete(livestreamId)
      return note(known, now)
    },

    /** Finds the livestreams that have become silent since the last call. */
    look(now: number): string[] {
      const isHubSilent = hub.at > 0 && isLate(hub, now, leastGapOfHubMs)
      if (isHubSilent && records.count() >= leastForHub) {
        interrupted(now)
        hub.from = hub.at
        return []
      }
      const found: string[] = []
      for (const [livestreamId, one] of all()) {
        if (now - one.at > forgottenMs) {
          records.delete(livestreamId)
          silent.delete(livestreamId)
        } else if (!one.isSilent && isOverdue(one, now)) {
          one.isSilent = true
          silent.set(livestreamId, one)
          found.push(livestreamId)
        }
      }
      return found
    },

    get: (livestreamId: string): Heard | undefined => records.get(livestreamId)?.heard,
    all,

    /** Since when a livestream is silent, milliseconds since the epoch. Undefined: it is not. */
    silentSince(livestreamId: string): number | undefined {
      const known = records.get(livestreamId)?.heard
      return known?.isSilent ? known.at : undefined
    },

    /** The livestreams that are silent. */
    silent: (): ReadonlyMap<string, Heard> => silent,
  }

  function isOverdue(one: Heard, now: number): boolean {
    return now - one.since >= learningMs && isLate(one, now, leastGapMs)
  }

  /** The hub could get no events until now: what nobody has sent meanwhile is no silence. */
  function interrupted(now: number): void {
    hub.from = now
    for (const [, one] of all()) if (!one.isSilent) one.from = now
  }

  function* all(): Generator<[livestreamId: string, Heard]> {
    for (const [livestreamId, { heard }] of records.all()) if (heard) yield [livestreamId, heard]
  }

  function note(one: Heard, now: number): boolean {
    const wasSilent = one.isSilent
    // A gap in which the hub was away says nothing.
    if (one.at > 0 && one.from === one.at && now > one.at) learn(one.gaps, one.at, now, wasSilent)
    one.at = now
    one.from = now
    one.isSilent = false
    return wasSilent
  }
}

/** Whether nothing has come for twice as long as usual. `leastMs`: a usual gap is not shorter. */
function isLate({ gaps, at, from }: Heard, now: number, leastMs: number): boolean {
  // Of most livestreams, this says enough.
  if (now - from <= silentGaps * leastMs) return false
  const usual = usualGap(gaps, at)
  return usual !== undefined && now - from > silentGaps * usual
}
