import type { WorkItem } from './work-item.ts'

/** Where the items of a queue go. */
export interface Target {
  /** What shares a fate and connections: bounds are counted by it. */
  endpoint: string
  /** Tries once; never rejects. Ends early, with whatever result, when `signal` aborts. */
  deliver(item: WorkItem, body: Buffer, signal: AbortSignal): Promise<Outcome>
}

/** What came of one try. */
export interface Outcome {
  /** `refused`: the answer blames the message. `gone`: nothing more is wanted there. */
  result: 'acknowledged' | 'refused' | 'failed' | 'gone'
  status: number | null
  /** Null when it was acknowledged. */
  reason: string | null
  /** The endpoint asked to be left alone for so long. */
  retryAfterMs?: number
}
