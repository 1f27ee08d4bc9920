/** Longest pause that a hub is believed, seconds. Hours would be a mistake of the server, or of a proxy. */
const longest = 3_600

/**
 * The seconds after which a response asks to come again, by its header `Retry-After`. At least one: a proxy may say 0, and
 * would be asked without end. Undefined: it names no number.
 */
export function readRetryAfter(header: string | null | undefined): number | undefined {
  const seconds = Number.parseFloat(header ?? '')
  return Number.isNaN(seconds) ? undefined : Math.min(Math.max(seconds, 1), longest)
}
