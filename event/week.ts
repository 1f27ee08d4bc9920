const dayMs = 24 * 3600_000
const weekMs = 7 * dayMs

/** A week as ISO 8601 writes it: `2026-W48`. Some years have no week 53: `readWeek` knows. */
export const weekPattern = '^[0-9]{4}-W(0[1-9]|[1-4][0-9]|5[0-3])$'

/** A week, from Monday to Sunday by UTC. */
export interface Week {
  name: string
  /** Its first moment, and that of the next week, milliseconds since the epoch. */
  from: number
  to: number
}

/** The week of an instant, milliseconds since the epoch. */
export function weekOf(at: number): Week {
  const day = Math.floor(at / dayMs)
  // The epoch was a Thursday.
  const monday = day - ((day + 3) % 7)
  // The year of a week is that of its Thursday.
  const year = new Date((monday + 3) * dayMs).getUTCFullYear()
  const number = Math.floor((monday + 3 - Date.UTC(year, 0, 1) / dayMs) / 7) + 1
  const name = `${String(year).padStart(4, '0')}-W${String(number).padStart(2, '0')}`
  return { name, from: monday * dayMs, to: monday * dayMs + weekMs }
}

/** The week before or after another one, by a number of weeks. */
export function weekBeside({ from }: Week, weeks: number): Week {
  return weekOf(from + weeks * weekMs)
}

/** The week of this name. Undefined: it is none, or its year has no such week. */
export function readWeek(name: string): Week | undefined {
  if (!new RegExp(weekPattern).test(name)) return undefined
  // The 4th of January is always in the first week.
  const week = weekBeside(weekOf(Date.UTC(Number(name.slice(0, 4)), 0, 4)), Number(name.slice(6)) - 1)
  return week.name === name ? week : undefined
}
