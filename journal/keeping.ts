import type { IndexEntry } from './entry.ts'

/*
 * The rules that say which messages the journal keeps (docs/operators.md, "What the journal keeps"). The newest
 * messages of all streams form the window: the journal keeps all of them. Older messages stay only if a rule of their
 * stream asks for them. The functions of this file only calculate: they do not access the store.
 */

/** How much the journal keeps, as configured. */
export interface KeepingLimits {
  /** Events per livestream. */
  history: number
  /** Bytes that the events of all livestreams may have together. The events in the window do not count. */
  historyBytes: number
  /**
   * How many messages one returning session may get, and how many valid control events one livestream may have. Also
   * how many reports one institution may have, if this number is above `minReports`.
   */
  queueLimit: number
  /** Bytes of the window: the newest messages of all streams. */
  windowBytes?: number
}

const defaultWindowBytes = 64 * 1024 * 1024
/** No rule keeps a message for longer than this, milliseconds. */
export const maxAgeMs = 7 * 24 * 3600 * 1000
/**
 * Per stream, the journal keeps at least this many of the newest reports, and this many of the newest reports with
 * errors.
 */
export const minReports = 1_000
/** Bytes that a report may have on average. A usual report has 1 kB, or 5 kB if it holds a refused event. */
const reportBytes = 8 * 1024
/** A livestream may always have 1/256 of `historyBytes`, however many bytes the other livestreams have. */
const minShares = 256
/** Livestreams share this part of `historyBytes`. The rest is room for new events until the next sweep removes some. */
const sharedPart = 15 / 16
/** The window consists of about this many parts. The window moves by dropping its oldest part. */
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
export interface Reach {
  /** The window begins at this position: the journal keeps every message from there on. */
  window: number
  /** Events before this position no longer count as history, because the history had too many bytes. */
  historyFrom: number
  /** Maximum number of bytes that the history of one livestream may have. */
  streamBytes: number
  now: number
}

/**
 * Returns the messages of a stream that no rule keeps. `newestFirst`: the index entries of the stream that are older
 * than the window, and its control events inside the window. `inWindow`: how many messages the stream has inside the
 * window.
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
    // Reports with errors have a separate limit. Otherwise reports without errors would push them out within minutes.
    const isNewestError =
      entry.hasErrors && ++withErrors <= minReports && errorBytes <= minReports * reportBytes
    return entry.at <= now - maxAgeMs || !(isRecent || isValidControl || isNewestOther || isNewestError)
  })
}

/**
 * Returns how many bytes of history one livestream may have: twice the free bytes. `used`: bytes of all livestreams.
 * The fewer bytes are free, the lower the limit, so the livestreams with the longest history are shortened first. Even
 * if there is only one livestream, it takes less than two thirds of all bytes.
 */
export function streamBytesOf({ historyBytes }: Pick<KeepingLimits, 'historyBytes'>, used: number): number {
  return Math.max(historyBytes / minShares, 2 * (historyBytes * sharedPart - used))
}

/** Whether a message belongs to the history of a livestream: its stream differs from its topic, and it is no report. */
export function isHistory({
  stream,
  topic,
  isReport,
}: Pick<IndexEntry, 'topic' | 'isReport'> & { stream?: string }): boolean {
  return stream !== undefined && stream !== topic && !isReport
}

/**
 * Whether a message is a control event. A control event is valid until the instant `expires`. Until then, returning
 * sessions get the event.
 */
export function isControlEvent({ keep, expires, isReport }: IndexEntry): boolean {
  return keep === 'every' && expires !== undefined && !isReport
}

/**
 * Returns the parts of the window as of now. `appended`: bytes that were appended since the last call, up to the
 * position `head`. `passed`: the last position that has now left the window, 0 if none has.
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
    // If the time of a part is later than now, the part began while the clock was ahead. Then take the time of the next
    // part, which began after it.
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
