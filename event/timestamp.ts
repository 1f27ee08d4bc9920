/**
 * The instant that `text` names in milliseconds since the epoch, or undefined if it names none.
 *
 * Accepts ISO 8601 calendar dates with hours and minutes at least, and an offset (service.md §2, design.md §7). A
 * fraction is one of seconds, or of minutes where there are no seconds. Impossible dates, leap seconds and 24:00 are no
 * instants. The result is exact to the microsecond, so that events can be ordered by it; further digits are cut off.
 */
export function parseInstant(text: string): number | undefined {
  const parts = pattern.exec(text)?.groups
  if (parts === undefined) return undefined
  const year = Number(parts.year)
  const month = Number(parts.month)
  const day = Number(parts.day)
  const hour = Number(parts.hour)
  const minute = Number(parts.minute)
  const second = Number(parts.second ?? 0)
  const offsetHour = Number(parts.offsetHour ?? 0)
  const offsetMinute = Number(parts.offsetMinute ?? 0)
  if (hour > 23 || minute > 59 || second > 59 || offsetHour > 23 || offsetMinute > 59) return undefined

  // Not Date.UTC: it takes the years 0 to 99 for 1900 to 1999.
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  // A day that does not exist rolls over into the next month.
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined

  // Computes with nine digits as a whole number, because Number('0.57') * 100, for example, is not exactly 57.
  const billionths = Number((parts.fraction ?? '').slice(0, 9).padEnd(9, '0'))
  const microseconds = Math.floor((billionths * (parts.second === undefined ? 60 : 1)) / 1000)
  const offset = (offsetHour * 60 + offsetMinute) * (parts.sign === '-' ? -1 : 1)
  return date.getTime() + ((hour * 60 + minute - offset) * 60 + second) * 1000 + microseconds / 1000
}

const pattern =
  /^(?<year>\d{4})-(?<month>\d\d)-(?<day>\d\d)[Tt](?<hour>\d\d):(?<minute>\d\d)(?::(?<second>\d\d))?(?:[.,](?<fraction>\d+))?(?:[Zz]|(?<sign>[+-])(?<offsetHour>\d\d)(?::?(?<offsetMinute>\d\d))?)$/

/** The form of an instant for JSON Schema tools. It does not say which dates exist. */
export const instantPattern = pattern.source.replace(/\?<\w+>/g, '')
