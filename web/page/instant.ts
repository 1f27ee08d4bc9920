import { parseInstant } from '../../event/format.ts'

/** The time in a text (docs/publishers.md, "Times"), milliseconds since the epoch. NaN: it is no time. */
export function timeOf(at: string): number {
  return parseInstant(at) ?? Date.parse(at)
}
