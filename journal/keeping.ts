import type { IndexEntry } from './entry.ts'

/*
 * The rules of what the journal keeps (docs/operators.md, "What the journal keeps"). The window is the newest messages
 * of all streams. Older messages are kept if a rule of their stream asks for them. Nothing here reads or writes.
 */

/** How much is kept, by configuration. */
export interface KeepingLimits {
  /** Events per livestream. */
  history: number
  /** Bytes of all events together that are older than the window. */
  historyBytes: number
  /** Messages for a returning session, and valid control events per livestream. Also reports, if above `minReports`. */
  queueLimit: number
  /** Bytes of the window: the newest messages of all streams. */
  windowBytes?: number
}

const defaultWindowBytes = 64 * 1024 * 1024
/** No rule keeps a message for longer than this, milliseconds. */
export const maxAgeMs = 7 * 24 * 3600 * 1000
/** At least this many reports per stream are kept, and as many again of reports with errors. */
export const minReports = 1_000
/** Bytes that a report may have on average. A usual report has 1 kB, and 4 kB more if it holds a refused event. */
const reportBytes = 8 * 1024
/** The byte limit of a livestream never falls below 1/256 of the history bytes, however much the others have. */
const minShares = 256
/** Livestreams share this part of the history bytes. The rest is for events that come before the next shortening. */
const sharedPart = 15 / 16
/** The window has about this many parts. Its beginning moves from one part to the next. */
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

/** How far the rules reach at the moment. */
export interface Reach {
  /** Everything from this position on is kept. */
  window: number
  /** Events before this position no longer count as history, because the history had too many bytes. */
  historyFrom: number
  /** A livestream has no more bytes of history than this. */
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
  /** Bytes of messages older than the window. */
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
    // Reports with errors have a limit of their own. Otherwise other reports would push them out within minutes.
    const isAskedLater =
      entry.hasErrors && ++withErrors <= minReports && errorBytes <= minReports * reportBytes
    return entry.at <= now - maxAgeMs || !(isRecent || isDue || isAsked || isAskedLater)
  })
}

/**
 * How many bytes of history a livestream may have: twice the free bytes. So the livestreams with the longest history
 * are shortened first, and the others keep theirs. A single livestream takes less than two thirds of all bytes.
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

/** Whether a message is a control event: it is valid until a time, and until then returning sessions get it. */
export function isControlEvent({ keep, expires, isReport }: IndexEntry): boolean {
  return keep === 'every' && expires !== undefined && !isReport
}

/**
 * The window as of now. `passed`: the last position that has just left it, 0 if none has. `appended`: bytes that were
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
