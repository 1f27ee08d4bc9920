/** How many items and dead letters each queue may hold, and for how long. */
export interface WorkLimits {
  /** Maximum number of items that wait in one queue. */
  perQueue: number
  /** An item that waits for longer than this becomes a dead letter, milliseconds. */
  ageMs: number
  deadLettersPerQueue: number
  deadLetterAgeMs: number
}

export const workLimits = {
  ageMs: 7 * 24 * 3_600_000, // design.md §10
  deadLettersPerQueue: 1_000,
  deadLetterAgeMs: 30 * 24 * 3_600_000,
} as const

/** Maximum numbers of deliveries under way at once: in total, and to one endpoint. */
export interface Slots {
  healthy: { total: number; perEndpoint: number }
  /** For queues whose endpoint fails. These queues use up no slots of healthy queues. */
  failing: { total: number; perEndpoint: number }
}

/** An owner (institution or plugin target) that delivers alone gets half of each number: see `concurrency.ts`. */
export const slots: Slots = {
  healthy: { total: 512, perEndpoint: 32 },
  failing: { total: 128, perEndpoint: 8 },
}
