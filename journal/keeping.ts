import type { IndexEntry } from './entry.ts'

/*
 * The rules by which the journal keeps messages (docs/operators.md, "What the journal keeps"). The window is the newest
 * messages of all streams: all of them stay. Older messages stay if a rule of their stream asks for them.
 */

/** How much the journal keeps, as configured. */
export interface KeepingLimits {
  /** Events per livestream. */
  history: number
  /** Maximum number of bytes of all events that are older than the window. */
  historyBytes: number
  /**
   * Maximum number of
   * - messages for one returning session
   * - valid control events of one livestream
   * - reports of one institution, if this limit is above `minReports`.
   */
  queueLimit: number
  /** Bytes of the window: the newest messages of all streams. */
  windowBytes?: number
}

const defaultWindowBytes = 64 * 1024 * 1024
/** No rule keeps a message for longer than this, milliseconds. */
export const maxAgeMs = 7 * 24 * 3600 * 1000
/**
 * The journal keeps at least this many of a stream's newest reports. The journal also keeps this many of the stream's
 * newest reports with errors.
 */
const minReports = 1_000
/**
 * For `n` reports of a stream, a rule allows `n` times this many bytes. A usual report has 1 kB. A report with a
 * refused event has 5 kB.
 */
const reportBytes = 8 * 1024
/** A livestream can always have 1/256 of `historyBytes`, whatever other livestreams use. */
const minShares = 256
/** Livestreams share this part of `historyBytes`. The rest is for new events until the next sweep. */
const sharedPart = 15 / 16
/** The window has about this many parts, and moves by dropping the oldest. */
const windowParts = 64
/** A part of the window spans no more time than this, milliseconds. */
const maxPartMs = 6 * 3600 * 1000

/** Part of the window. */
export interface WindowPart {
  /** Last position of the part. */
  upTo: number
  bytes: number
  /** When the part began, milliseconds since the epoch. */
  at: number
}

/** How many messages a stream has in the window. */
export interface InWindow {
  events: number
  others: number
  /** How many of `others` are reports with errors. */
  withErrors: number
}

/** The limits that the rules apply at the moment. */
export interface KeptFrom {
  /** The window begins at this position: the journal keeps every message from there on. */
  window: number
  /** The history had too many bytes: events before this position no longer count. */
  historyFrom: number
  /** Maximum number of bytes that the history of one livestream may have. */
  streamBytes: number
  now: number
}

/**
 * Returns the messages of a stream that no rule keeps. `newestFirst`: index entries older than the window, and control
 * events inside the window.
 */
export function unkept(
  newestFirst: readonly IndexEntry[],
  inWindow: InWindow,
  limits: KeepingLimits,
  reach: KeptFrom,
): IndexEntry[] {
  const { history, queueLimit } = limits
  const { window, historyFrom, streamBytes, now } = reach
  const most = Math.max(minReports, queueLimit)
  let { events, others, withErrors } = inWindow
  /** `eventBytes`, `otherBytes` and `errorBytes` count only messages older than the window. */
  let eventBytes = 0
  let otherBytes = 0
  let errorBytes = 0
  let controls = 0
  return newestFirst.filter((entry) => {
    const isControl = isControlEvent(entry)
    const isValidControl = isControl && (entry.expires ?? now) > now && ++controls <= queueLimit
    if (entry.position >= window) return false
    const isEvent = isHistory(entry)
    if (isEvent) eventBytes += entry.bytes
    const isRecent =
      isEvent && ++events <= history && entry.position >= historyFrom && eventBytes <= streamBytes
    const isOther = !isEvent && !isControl
    if (isOther) otherBytes += entry.bytes
    const isNewestOther = isOther && ++others <= most && otherBytes <= most * reportBytes
    if (entry.hasErrors) errorBytes += entry.bytes
    // Reports with errors have their own limit: others would push them out within minutes.
    const isNewestError =
      entry.hasErrors && ++withErrors <= minReports && errorBytes <= minReports * reportBytes
    return entry.at <= now - maxAgeMs || !(isRecent || isValidControl || isNewestOther || isNewestError)
  })
}

/**
 * Returns the maximum number of bytes of history for one livestream. `used`: bytes of all livestreams. See
 * docs/decisions, "The livestreams with the most history are shortened first".
 */
export function streamBytesOf({ historyBytes }: Pick<KeepingLimits, 'historyBytes'>, used: number): number {
  return Math.max(historyBytes / minShares, 2 * (historyBytes * sharedPart - used))
}

/** Whether a message belongs to the history of a livestream. */
export function isHistory({
  stream,
  topic,
  isReport,
}: Pick<IndexEntry, 'topic' | 'isReport'> & { stream?: string }): boolean {
  return stream !== undefined && stream !== topic && !isReport
}

/** Whether a message is a control event. Returning sessions get control events until `expires`. */
export function isControlEvent({ keep, expires, isReport }: IndexEntry): boolean {
  return keep === 'every' && expires !== undefined && !isReport
}

/**
 * Adds the bytes that were appended since the last call, and drops the oldest parts. `passed`: the last position that
 * was dropped, 0 if none.
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
    // A part has a future time if a clock was ahead: the next part's time counts.
    const began = all.find(({ at }) => at <= now)?.at ?? now
    if (bytes - oldest.bytes < windowBytes && began > now - maxAgeMs) break
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
  if (!last || last.bytes >= partBytes || Math.abs(now - last.at) >= maxPartMs)
    return [...parts, { upTo: head, bytes, at: now }]
  return [...parts.slice(0, -1), { ...last, upTo: head, bytes: last.bytes + bytes }]
}
