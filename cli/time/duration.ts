import { usage } from '../command.ts'

const secondsOf: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400 }

/** Seconds of a duration such as `90s`, `30m`, `24h` or `7d`; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const [, digits = '', unit = ''] = /^([0-9]{1,9})([smhd])$/.exec(text) ?? []
  const seconds = Number(digits) * (secondsOf[unit] ?? 0)
  return seconds > 0 ? seconds : undefined
}

/** Converts the value of an option, such as `24h`, to seconds. Throws a `usage` error if it is no duration. */
export function durationOf(option: string, typed: string): number {
  const seconds = parseDuration(typed)
  if (seconds !== undefined) return seconds
  throw usage(`${option} must be a duration such as 90s, 30m, 24h or 7d, not "${typed}"`)
}
