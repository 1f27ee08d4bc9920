import { parseInstant } from '../../event/format.ts'

/** A time as publishers may write it (docs/publishers.md, "Times"), milliseconds since the epoch. NaN: it is no time. */
export function timeOf(at: string): number {
  return parseInstant(at) ?? Date.parse(at)
}
