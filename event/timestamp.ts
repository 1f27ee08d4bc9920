/**
 * The instant that `text` names in milliseconds since the epoch, or undefined if it names none.
 *
 * Accepts ISO 8601 with date, time with seconds, and an offset (service.md §2); impossible dates, leap
 * seconds and 24:00 are no instants (design.md §7). Digits below a millisecond are cut off.
 */
export function parseInstant(text: string): number | undefined {
  const parts = pattern.exec(text)?.groups
  if (parts === undefined) return undefined
  const year = Number(parts.year)
  const month = Number(parts.month)
  const day = Number(parts.day)
  const hour = Number(parts.hour)
  const minute = Number(parts.minute)
  const second = Number(parts.second)
  const offsetHour = Number(parts.offsetHour ?? 0)
  const offsetMinute = Number(parts.offsetMinute ?? 0)
  if (hour > 23 || minute > 59 || second > 59 || offsetHour > 23 || offsetMinute > 59) return undefined

  // Not Date.UTC: it takes the years 0 to 99 for 1900 to 1999.
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  // A day that does not exist rolls over into the next month.
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined

  const millisecond = Number((parts.fraction ?? '').slice(0, 3).padEnd(3, '0'))
  const offset = (offsetHour * 60 + offsetMinute) * (parts.sign === '-' ? -1 : 1)
  return date.getTime() + ((hour * 60 + minute - offset) * 60 + second) * 1000 + millisecond
}

const pattern =
  /^(?<year>\d{4})-(?<month>\d\d)-(?<day>\d\d)T(?<hour>\d\d):(?<minute>\d\d):(?<second>\d\d)(?:\.(?<fraction>\d{1,9}))?(?:Z|(?<sign>[+-])(?<offsetHour>\d\d):?(?<offsetMinute>\d\d))$/

/** The form of an instant as JSON Schema tools know it; what it does not say is which dates there are. */
export const instantPattern = pattern.source.replace(/\?<\w+>/g, '')
