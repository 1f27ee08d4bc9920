/**
 * Reads an instant, in any of the forms of docs/publishers.md, "Times" (service.md §2, design.md §7). Returns
 * milliseconds since the epoch, or undefined if the text is no instant. The result includes microseconds, because the
 * hub orders events by their instants. Further digits are cut off.
 *
 * Accepts an ISO 8601 date with hours, minutes and an offset. Seconds and a fraction are optional. Without seconds, the
 * fraction is a fraction of a minute. Refuses impossible dates, leap seconds and 24:00.
 */
export function parseInstant(text: string): number | undefined {
  // Numbered groups: named ones are an object more for each event.
  const parts = instant.exec(text)
  if (!parts) return undefined
  const year = Number(parts[1])
  const month = Number(parts[2])
  const day = Number(parts[3])
  const hour = Number(parts[4])
  const minute = Number(parts[5])
  const second = Number(parts[6] ?? 0)
  const fraction = parts[7] ?? ''
  const sign = parts[8]
  const offsetHour = Number(parts[9] ?? 0)
  const offsetMinute = Number(parts[10] ?? 0)
  if (hour > 23 || minute > 59 || second > 59 || offsetHour > 23 || offsetMinute > 59) return undefined

  // Do not use Date.UTC: it reads the years 0 to 99 as 1900 to 1999.
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  // A day that does not exist rolls over into the next month.
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined

  // A whole number of nine digits: Number('0.57') * 100 is not exactly 57.
  const billionths = Number(fraction.slice(0, 9).padEnd(9, '0'))
  const microseconds = Math.floor((billionths * (parts[6] === undefined ? 60 : 1)) / 1000)
  const offset = (offsetHour * 60 + offsetMinute) * (sign === '-' ? -1 : 1)
  return date.getTime() + ((hour * 60 + minute - offset) * 60 + second) * 1000 + microseconds / 1000
}

/** The form of instants. It matches impossible dates too. */
export const instant =
  /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d)(?::(\d\d))?(?:[.,](\d+))?(?:[Zz]|([+-])(\d\d)(?::?(\d\d))?)$/
