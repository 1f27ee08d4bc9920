import type { WorkItem } from './queue/work-item.ts'

/** Where the items of a queue go. */
export interface Target {
  /** Queues with the same endpoint share its connections and its failures: bounds are counted by it. */
  endpoint: string
  /** The owner of the queue: owners share the deliveries that may run at once. */
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

/** The outcome of one attempt. */
export interface Outcome {
  /** `refused`: the answer blames the message. `gone`: the endpoint wants no more messages. */
  result: 'acknowledged' | 'refused' | 'failed' | 'gone'
  status: number | null
  /** Null when it was acknowledged. */
  reason: string | null
  /** The endpoint asked to be left alone for so long. */
  retryAfterMs?: number
}
