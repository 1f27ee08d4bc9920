/** What is noticed of the livestreams of an institution now. Times are milliseconds since the epoch. */
export interface Noticed {
  /** Silent livestreams. `since`: when their last event was accepted. */
  silent: readonly { livestreamId: string; since: number }[]
  /** Livestreams in loops. */
  loops: readonly { livestreamId: string; since: number }[]
  /** Refused events that the contact does not know of, by the code of an error. */
  refusals: readonly Refused[]
}

/** Events that were refused for an error. */
export interface Refused {
  errorCode: string
  events: number
  /** The error of one of them. */
  message: string
  path: string
}

/** What the contact of an institution was told, and when. Times are milliseconds since the epoch. */
export interface ToldSoFar {
  /** When the contact that was told was set, ISO 8601: another one knows of nothing. */
  contactSetAt: string
  /** The mails of the last day. */
  mails: number[]
  /** By livestream, of a silence: `since`. */
  silent: Record<string, number>
  /** By livestream: when the contact was told of its loop. */
  loops: Record<string, number>
  /** By the code of an error: when the contact was told of it. */
  codes: Record<string, number>
}

const dayMs = 24 * 3600_000
/** At most one mail in this time, milliseconds, and so many a day (open.md §7). */
const betweenMs = 15 * 60_000
const mostADay = 6
/**
 * The last event before the next silence comes at least 10 minutes later, and nodes differ by less than this in when they
 * heard of one; milliseconds.
 */
const sameSilenceMs = 5 * 60_000
/** Livestreams that are remembered as told of: the newest. */
const mostTold = 1_000

/** What a contact was told, by the record of its institution: the mails count whomever they went to. */
export function toldTo(contactSetAt: string, recorded: ToldSoFar | undefined): ToldSoFar {
  if (recorded?.contactSetAt === contactSetAt) return recorded
  return { contactSetAt, mails: recorded?.mails ?? [], silent: {}, loops: {}, codes: {} }
}

/**
 * What a contact is to be told now. Undefined: nothing, or not yet. A silence is told once. A loop, and refusals for the
 * same error, are told again after a day at the earliest.
 */
export function dueOf(noticed: Noticed, told: ToldSoFar, now: number): Noticed | undefined {
  const mails = ofLastDay(told.mails, now)
  if (mails.length >= mostADay || mails.some((at) => Math.abs(now - at) < betweenMs)) return undefined
  const isOld = (at: number | undefined) => at === undefined || Math.abs(now - at) >= dayMs
  const silent = noticed.silent.filter(
    ({ livestreamId, since }) => since - (told.silent[livestreamId] ?? 0) > sameSilenceMs,
  )
  const loops = noticed.loops.filter(({ livestreamId }) => isOld(told.loops[livestreamId]))
  const refusals = noticed.refusals.filter(({ errorCode }) => isOld(told.codes[errorCode]))
  if (silent.length + loops.length + refusals.length === 0) return undefined
  return { silent, loops, refusals }
}

/** What a contact has been told, after it is told this now. */
export function afterTelling({ silent, loops, refusals }: Noticed, told: ToldSoFar, now: number): ToldSoFar {
  return {
    contactSetAt: told.contactSetAt,
    mails: [...ofLastDay(told.mails, now), now],
    silent: newest({
      ...told.silent,
      ...Object.fromEntries(silent.map((one) => [one.livestreamId, one.since])),
    }),
    loops: newest({ ...told.loops, ...Object.fromEntries(loops.map((one) => [one.livestreamId, now])) }),
    codes: newest({ ...told.codes, ...Object.fromEntries(refusals.map((one) => [one.errorCode, now])) }),
  }
}

/** A clock may be set back, so a mail may lie ahead. */
function ofLastDay(mails: readonly number[], now: number): number[] {
  return mails.filter((at) => Math.abs(now - at) < dayMs)
}

function newest(times: Record<string, number>): Record<string, number> {
  const all = Object.entries(times)
  if (all.length <= mostTold) return times
  return Object.fromEntries(all.sort(([, a], [, b]) => b - a).slice(0, mostTold))
}
