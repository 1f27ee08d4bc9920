/** How much a queue may hold. */
export interface WorkLimits {
  /** Items of one queue. */
  perQueue: number
  /** Age at which an item is given up, milliseconds. */
  ageMs: number
  deadLettersPerQueue: number
  deadLetterAgeMs: number
}

export const workLimits = {
  ageMs: 7 * 24 * 3_600_000, // design.md §10
  deadLettersPerQueue: 1_000,
  deadLetterAgeMs: 30 * 24 * 3_600_000,
} as const
