/** How much a count changes, by its key. */
export type Count = [key: string, by: number]

/** Counts that several processes keep together. */
export interface SharedCounts {
  /** Tells the others that this process counts more, or less. They know within some milliseconds. */
  add(key: string, by: 1 | -1): void
  /** What all other processes count. */
  ofOthers(key: string): number
}

/** The counts of a process without others. */
export const noOthers: SharedCounts = { add: () => undefined, ofOthers: () => 0 }
