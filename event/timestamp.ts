/**
 * Reads an instant. Returns milliseconds since the epoch, or undefined if `text` is not an instant.
 *
 * Accepts ISO 8601 calendar dates with hours, minutes and an offset (service.md §2, design.md §7). Seconds may be left
 * out. A fraction belongs to the seconds, or to the minutes if there are no seconds. Impossible dates, leap seconds and
 * 24:00 are refused. The result is exact to the microsecond, because events are ordered by it. More digits are cut off.
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

  // Do not use Date.UTC: it reads the years 0 to 99 as 1900 to 1999.
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  // A day that does not exist rolls over into the next month.
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined

  // Read nine digits of the fraction as a whole number, because for example Number('0.57') * 100 is not exactly 57.
  const billionths = Number((parts.fraction ?? '').slice(0, 9).padEnd(9, '0'))
  const microseconds = Math.floor((billionths * (parts.second === undefined ? 60 : 1)) / 1000)
  const offset = (offsetHour * 60 + offsetMinute) * (parts.sign === '-' ? -1 : 1)
  return date.getTime() + ((hour * 60 + minute - offset) * 60 + second) * 1000 + microseconds / 1000
}

const pattern =
  /^(?<year>\d{4})-(?<month>\d\d)-(?<day>\d\d)[Tt](?<hour>\d\d):(?<minute>\d\d)(?::(?<second>\d\d))?(?:[.,](?<fraction>\d+))?(?:[Zz]|(?<sign>[+-])(?<offsetHour>\d\d)(?::?(?<offsetMinute>\d\d))?)$/

/** Pattern of an instant for the API description. It also matches dates that do not exist, such as 30 February. */
export const instantPattern = pattern.source.replace(/\?<\w+>/g, '')
