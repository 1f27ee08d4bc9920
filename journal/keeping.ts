import type { IndexEntry } from './entry.ts'

/*
 * What the journal keeps (journal.md, "What is kept"): the window, which is the newest of all streams, and behind it what
 * the rules of each stream keep. Nothing here reads or writes.
 */

/** How much is kept, by configuration. */
export interface KeepingLimits {
  /** Events per livestream. */
  history: number
  /** Bytes of the events behind the window, all together. */
  historyBytes: number
  /** Messages chosen for an offline session; valid control events per livestream, and reports where that is more. */
  queueLimit: number
  /** Bytes of the newest messages, whichever they are. */
  windowBytes?: number
}

const defaultWindowBytes = 64 * 1024 * 1024
/** Nothing is kept for longer because of a rule, milliseconds. */
export const maxAgeMs = 7 * 24 * 3600 * 1000
/** Reports per stream, at least; and as many that tell of errors. */
export const minReports = 1_000
/** So many bytes of them, on average. An ordinary one has one kilobyte, and four more of what was refused. */
const reportBytes = 8 * 1024
/** A livestream is not shortened for others below its share of so many. */
const minShares = 256
/** The rest is for what comes before livestreams are shortened. */
const sharedPart = 15 / 16
/** The window begins at one of so many places, and moves from one to the next. */
const windowParts = 64
/** A part of the window spans no more time than this, milliseconds. */
const maxPartMs = 6 * 3600 * 1000

/** Part of the window. */
export interface WindowPart {
  /** Its last position. */
  upTo: number
  bytes: number
  /** When it began, milliseconds since the epoch. */
  at: number
}

/** What a stream has in the window. */
export interface InWindow {
  events: number
  others: number
  /** Of them the reports that tell of errors. */
  withErrors: number
}

/** How far the rules reach at the moment. */
export interface Reach {
  /** Everything from this position on is kept. */
  window: number
  /** Older events than this position are no history: there was no room for them. */
  historyFrom: number
  /** A livestream has no more bytes of history than this. */
  streamBytes: number
  now: number
}

/**
 * The messages of a stream that no rule keeps. `newestFirst`: what the index has of it behind the window, and the control
 * events in the window as well; `inWindow`: how many messages there are in the window. The newest of a stream mostly are.
 */
export function unkept(
  newestFirst: readonly IndexEntry[],
  inWindow: InWindow,
  limits: KeepingLimits,
  reach: Reach,
): IndexEntry[] {
  const { history, queueLimit } = limits
  const { window, historyFrom, streamBytes, now } = reach
  const most = Math.max(minReports, queueLimit)
  let { events, others, withErrors } = inWindow
  /** Behind the window. */
  let eventBytes = 0
  let otherBytes = 0
  let errorBytes = 0
  let controls = 0
  return newestFirst.filter((entry) => {
    const isControl = isControlEvent(entry)
    const isDue = isControl && (entry.expires ?? now) > now && ++controls <= queueLimit
    if (entry.position >= window) return false
    const isEvent = isHistory(entry)
    if (isEvent) eventBytes += entry.bytes
    const isRecent =
      isEvent && ++events <= history && entry.position >= historyFrom && eventBytes <= streamBytes
    const isOther = !isEvent && !isControl
    if (isOther) otherBytes += entry.bytes
    const isAsked = isOther && ++others <= most && otherBytes <= most * reportBytes
    if (entry.hasErrors) errorBytes += entry.bytes
    // Those of what was published would push them away within minutes.
    const isAskedLater =
      entry.hasErrors && ++withErrors <= minReports && errorBytes <= minReports * reportBytes
    return entry.at <= now - maxAgeMs || !(isRecent || isDue || isAsked || isAskedLater)
  })
}

/**
 * How much history a livestream may have: twice what is free. So those with the most are shortened first, and what the
 * others have stays. One livestream takes less than two thirds of it all.
 */
export function streamBytesOf({ historyBytes }: Pick<KeepingLimits, 'historyBytes'>, used: number): number {
  return Math.max(historyBytes / minShares, 2 * (historyBytes * sharedPart - used))
}

/** Whether it belongs to the history of a livestream: whatever has a stream of its own, and is no report. */
export function isHistory({
  stream,
  topic,
  isReport,
}: Pick<IndexEntry, 'topic' | 'isReport'> & { stream?: string }): boolean {
  return stream !== undefined && stream !== topic && !isReport
}

/** Its time ends; until then those who were away get it. */
export function isControlEvent({ keep, expires, isReport }: IndexEntry): boolean {
  return keep === 'every' && expires !== undefined && !isReport
}

/**
 * The window as of now, and the last position that is behind it, 0 where nothing has left it. `appended`: bytes that were
 * appended since the last call, up to `head`.
 */
export function moveWindow(
  parts: readonly WindowPart[],
  appended: { bytes: number; head: number },
  { windowBytes = defaultWindowBytes }: Pick<KeepingLimits, 'windowBytes'>,
  now: number,
): { parts: WindowPart[]; passed: number } {
  const all = withAppended(parts, appended, windowBytes / windowParts, now)
  let bytes = all.reduce((sum, part) => sum + part.bytes, 0)
  let passed = 0
  for (let oldest = all[0]; oldest; oldest = all[0]) {
    if (bytes - oldest.bytes < windowBytes && oldest.at > now - maxAgeMs) break
    passed = oldest.upTo
    bytes -= oldest.bytes
    all.shift()
  }
  return { parts: all, passed }
}

function withAppended(
  parts: readonly WindowPart[],
  { bytes, head }: { bytes: number; head: number },
  partBytes: number,
  now: number,
): WindowPart[] {
  const last = parts.at(-1)
  if (head <= (last?.upTo ?? 0)) return [...parts]
  if (!last || last.bytes >= partBytes || last.at <= now - maxPartMs)
    return [...parts, { upTo: head, bytes, at: now }]
  return [...parts.slice(0, -1), { ...last, upTo: head, bytes: last.bytes + bytes }]
}
