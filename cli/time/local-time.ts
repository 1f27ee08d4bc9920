import { parseInstant } from '../../event/format.ts'

/** An ISO 8601 time in the time zone of the operator, with the offset. Other values stay as they are. */
export function localTime(value: unknown): unknown {
  const found = typeof value === 'string' ? instant.exec(value) : null
  if (!found) return value
  const [text, fraction = ''] = found
  // `new Date` makes 1 March of 29 February, where there is none.
  if (parseInstant(text) === undefined) return value
  const moment = new Date(text)
  const ahead = -moment.getTimezoneOffset()
  const local = new Date(moment.getTime() + ahead * 60_000).toISOString().slice(0, 19)
  // The year has more than four digits here, as at the end of 9999.
  if (!/^\d/.test(local)) return value
  return `${local}${fraction}${offsetOf(ahead)}`
}

/** Whether the field at a path is a time. Ignores the value, because an id of a publisher may look like a time. */
export function isTime(path: string): boolean {
  return timePaths.test(path)
}

const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.]\d+)?(?:Z|[+-]\d\d:\d\d)$/
const timePaths =
  /(^|\.)(at|time|since|from|oldest|nextTry|expires|sunset|notAfter|signsFrom)$|[a-z](At|Time|Until)$/

function offsetOf(minutes: number): string {
  if (minutes === 0) return 'Z'
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60]
  return `${minutes < 0 ? '-' : '+'}${padded(hours)}:${padded(rest)}`
}

function padded(number: number): string {
  return String(number).padStart(2, '0')
}
