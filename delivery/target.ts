import type { WorkItem } from './queue/work-item.ts'

/** Where the items of a queue go. */
export interface Target {
  /** What shares a fate and connections: bounds are counted by it. */
  endpoint: string
  /** Whose it is: owners share what may run at once. */
  owner: string
  /** Tries once; never rejects. Ends early, with whatever result, when `signal` aborts. */
  deliver(item: WorkItem, payload: Buffer, signal: AbortSignal): Promise<Outcome>
}

/** A queue from which nothing is sent any more: its items are given up. */
interface Closed {
  /** Why. */
  closed: string
}

/** Undefined: the items of the queue wait. `gone`: it was removed, its items go. */
export type TargetOf = (queue: string) => Target | Closed | 'gone' | undefined

export function isClosed(target: ReturnType<TargetOf>): target is Closed {
  return typeof target === 'object' && 'closed' in target
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
