import { parseInstant } from '../../event/format.ts'
import { usage } from '../command.ts'
import { parseDuration } from './duration.ts'

/** The forms of a time that an option takes, for its summary. */
export const instantForms = 'ISO 8601, today, 18:02 (today), a date, or how long ago (90s, 30m, 2h, 7d)'

/** The moment that an option means, ISO 8601. Dates and times of day are those of the operator's time zone. */
export function instantOf(option: string, typed: string, now = new Date()): string {
  const seconds = parseDuration(typed)
  const time = seconds === undefined ? localTime(typed, now) : Math.max(0, now.getTime() - seconds * 1000)
  if (time !== undefined) return new Date(time).toISOString()
  if (parseInstant(typed) !== undefined) return typed
  throw usage(
    `${option} "${typed}" is no time: expected one such as 2026-03-01T18:02:00+01:00, 2026-03-01, 18:02, today, or how long ago, such as 2h`,
  )
}

/** Like `instantOf`, but throws a `usage` error if the moment is still to come. */
export function passedInstantOf(option: string, typed: string, now = new Date()): string {
  const instant = instantOf(option, typed, now)
  if ((parseInstant(instant) ?? 0) <= now.getTime()) return instant
  throw usage(`${option} "${typed}" has not come yet: expected a time that has passed`)
}

/** The beginning of a day, or a time of today, in the operator's time zone. Undefined for another form. */
function localTime(typed: string, now: Date): number | undefined {
  if (typed === 'today') return new Date(now).setHours(0, 0, 0, 0)
  const [, hours, minutes] = /^([01][0-9]|2[0-3]):([0-5][0-9])$/.exec(typed) ?? []
  if (minutes !== undefined) return new Date(now).setHours(Number(hours), Number(minutes), 0, 0)
  if (!/^[0-9]{4}-[0-9]{2}-[0-9]{2}$/.test(typed)) return undefined
  // `parseInstant` refuses days that do not exist. `Date.parse` reads a time without an offset as local.
  return parseInstant(`${typed}T00:00Z`) === undefined ? undefined : Date.parse(`${typed}T00:00`)
}
