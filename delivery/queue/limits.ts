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

/** How many deliveries may be under way at once: in total, and to one endpoint. */
export interface Slots {
  healthy: { total: number; perEndpoint: number }
  /** Queues that fail have slots of their own, so that they take none from the others. */
  failing: { total: number; perEndpoint: number }
}

/** An owner that is alone gets half of each number (`concurrency.ts`). */
export const slots: Slots = {
  healthy: { total: 512, perEndpoint: 32 },
  failing: { total: 128, perEndpoint: 8 },
}
