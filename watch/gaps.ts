/** The longest usual time from an event of a livestream to its next one, for each hour of the week. All pure. */
export interface Gaps {
  /** Minutes, by the hour of the week (UTC) in which the time begins; 0: nothing is known of the hour. */
  minutes: Uint16Array
  /** The last hour of which something was learnt, in hours since the epoch. */
  hour: number
}

const hoursOfWeek = 168
const minuteMs = 60_000
const hourMs = 3600_000
/** From one week to the next, what is usual shrinks to this share, if nothing as long comes again. */
const keptShare = 0.75
/** An alarm is taken over only up to this multiple of what was usual: a dead playout is not usual next week. */
const growth = 2
/** So close to the border of an hour, that hour may be meant, milliseconds: news begin a little earlier or later. */
const borderMs = 10 * minuteMs

export function emptyGaps(): Gaps {
  return { minutes: new Uint16Array(hoursOfWeek), hour: 0 }
}

/** Gaps as they are stored. Undefined: it is no such text. */
export function readGaps(text: string, hour: number): Gaps | undefined {
  const bytes = new Uint8Array(Buffer.from(text, 'base64'))
  if (bytes.length !== 2 * hoursOfWeek) return undefined
  return { minutes: new Uint16Array(bytes.buffer), hour }
}

export function gapsAsText({ minutes }: Gaps): string {
  return Buffer.from(minutes.buffer, minutes.byteOffset, minutes.byteLength).toString('base64')
}

/** Learns that nothing came between two times, milliseconds since the epoch. `isAlarm`: that was an alarm. */
export function learn(gaps: Gaps, from: number, to: number, isAlarm: boolean): void {
  const hour = Math.floor(from / hourMs)
  const slot = hour % hoursOfWeek
  const known = gaps.minutes[slot] ?? 0
  const before = hour > gaps.hour ? Math.floor(known * keptShare) : known
  const most = isAlarm ? Math.max(known * growth, 10) : 0xffff
  const gap = Math.min(Math.ceil((to - from) / minuteMs), most, 0xffff)
  gaps.minutes[slot] = Math.max(before, gap)
  gaps.hour = Math.max(gaps.hour, hour)
}

/** The usual time to the next event after one at this time, milliseconds. Undefined: nothing is known of the hour. */
export function usualGap({ minutes }: Gaps, at: number): number | undefined {
  const of = (time: number) => minutes[Math.floor(time / hourMs) % hoursOfWeek] ?? 0
  if (of(at) === 0) return undefined
  const around = (time: number) => Math.max(of(time), of(time - borderMs), of(time + borderMs))
  return Math.max(around(at), around(at + learntLater(at))) * minuteMs
}

/**
 * How much later in its week the programme of this time was learnt, milliseconds. Programmes follow the clocks of people: in
 * the week after summer time has begun in Europe, they come an hour earlier by UTC, and after its end an hour later.
 */
function learntLater(at: number): number {
  const isAfterChangeIn = (month: number) => {
    // The clocks change at 01:00 UTC on the last Sunday of March and October.
    const last = new Date(Date.UTC(new Date(at).getUTCFullYear(), month, 31, 1))
    const since = at - last.setUTCDate(31 - last.getUTCDay())
    return since >= 0 && since < hoursOfWeek * hourMs
  }
  return isAfterChangeIn(2) ? hourMs : isAfterChangeIn(9) ? -hourMs : 0
}
