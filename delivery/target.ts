import type { WorkItem } from './queue/work-item.ts'

/** Where the items of a queue go. */
export interface Target {
  /** Queues with the same endpoint share the deliveries to it that may run at once. */
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

/** The target of a queue. Undefined: its items wait. `gone`: the queue was removed, so its items are removed too. */
export type TargetOf = (queue: string) => Target | Closed | 'gone' | undefined

export function isClosed(target: ReturnType<TargetOf>): target is Closed {
  return typeof target === 'object' && 'closed' in target
}

/** The outcome of one attempt. */
export interface Outcome {
  /** `refused`: the answer blames the message. `gone`: the endpoint wants no more messages. */
  result: 'acknowledged' | 'refused' | 'failed' | 'gone'
  status: number | null
  /** Null when the message was acknowledged. */
  reason: string | null
  /** The endpoint asked to be left alone for so long. */
  retryAfterMs?: number
}
